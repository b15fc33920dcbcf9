//! Globs on tool names: `*` stands for any characters, `?` for one.

/// Whether the glob fits the whole name.
pub(crate) fn fits(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut g, mut n) = (0, 0);
    // Where the last star stood, and how much of the name it has taken: only that star is ever retried.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                g += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    g = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

/// Whether the text has one of the signs of a glob.
pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_fit_whole_names() {
        let cases = [
            ("refund", "refund", true),
            ("refund", "refunds", false),
            ("*", "", true),
            ("re*d", "refund", true),
            ("*fund*", "refund", true),
            ("re?und", "refund", true),
            ("?", "", false),
            ("a*b*c", "axxbyybc", true),
            ("a*b*c", "axxbyyb", false),
            ("App.*", "App.refund", true),
        ];
        for (glob, name, expected) in cases {
            assert_eq!(fits(glob, name), expected, "{glob} {name}");
        }
    }
}
