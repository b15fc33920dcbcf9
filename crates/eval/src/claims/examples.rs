//! The sentences that a language file carries, run as tests of the file.

use super::{Claims, PatternSet, SetError};

impl PatternSet {
    /// Runs the file's own examples: each sentence under `fires` is claimed by a pattern of its family, each under
    /// `silent` by none. Empty where all hold; else one entry for each that does not, with its line.
    ///
    /// # Errors
    /// The file does not compile.
    pub fn check_examples(&self) -> Result<Vec<SetError>, SetError> {
        let claims = Claims::new(std::slice::from_ref(self))?;
        let mut failed = Vec::new();
        for (family, sentences) in &self.parts.examples.fires {
            for sentence in sentences {
                let found = claims.first(sentence.get_ref());
                if found.as_ref().is_none_or(|it| it.family != *family) {
                    let instead = found.map_or("nothing".to_owned(), |it| format!("{} ({})", it.family, it.pattern));
                    let reason = format!("`{}` should be found as {family}, and is as {instead}", sentence.get_ref());
                    failed.push(self.wrong(sentence.span().start, reason));
                }
            }
        }
        for (why, sentences) in &self.parts.examples.silent {
            for sentence in sentences {
                if let Some(found) = claims.first(sentence.get_ref()) {
                    let (text, pattern) = (sentence.get_ref(), found.pattern);
                    let reason = format!("`{text}` claims nothing ({why}), and `{pattern}` finds it");
                    failed.push(self.wrong(sentence.span().start, reason));
                }
            }
        }
        Ok(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{for_language, languages};
    use super::*;

    #[test]
    fn every_example_of_every_language_holds() {
        for tag in languages() {
            let failed = for_language(tag).unwrap().check_examples().unwrap();
            let told: Vec<_> = failed.iter().map(ToString::to_string).collect();
            assert!(told.is_empty(), "\n{}", told.join("\n"));
        }
    }

    #[test]
    fn a_mistake_in_a_file_is_told_with_its_file_and_line() {
        let with = |text: &str| {
            let text = format!("language = \"xx\"\n{text}\n[examples]\nfires = {{ f = [\"na\"] }}\nsilent = {{}}\n");
            let set = PatternSet::parse("xx.toml", &text)?;
            let failed = set.check_examples()?;
            failed.into_iter().next().map_or(Ok(()), Err)
        };
        let one = |find: &str| format!("[[patterns]]\nname = \"p\"\nfamily = \"f\"\nfind = '{find}'");
        assert_eq!(with(&one("na")), Ok(()));
        let table = [
            (one("(na"), "xx.toml:5: unclosed group"),
            (one("{nobody}"), "xx.toml:5: nothing is called `{nobody}`"),
            (one("{nobody"), "xx.toml:5: a `{` without its `}`"),
            (one(" "), "xx.toml:5: an empty expression"),
            (one("(?:[^ ]{1,1000}){1000}"), "xx.toml:5: "),
            (format!("{}\n{}", one("na"), one("na")), "xx.toml:7: there is a pattern `p` already"),
            (format!("words = {{ a = \"{{a}}\" }}\n{}", one("{a}")), "xx.toml:6: words that name one another"),
            (
                format!("verbs = {{ a = [] }}\nforms = [\"base\"]\n{}", one("na")),
                "xx.toml:2: the verb `a` has no forms",
            ),
            (format!("{}\nunles = 'x'", one("na")), "xx.toml:6: unknown field `unles`"),
            (one("other"), "xx.toml:7: `na` should be found as f, and is as nothing"),
            ("patterns = 3".to_owned(), "xx.toml:2: "),
        ];
        for (text, expected) in table {
            let why = with(&text).unwrap_err().to_string();
            assert!(why.starts_with(expected), "{text}\n{why}");
        }
    }
}
