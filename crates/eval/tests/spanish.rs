//! Sentences for the Spanish data file, by family.

#![allow(clippy::unwrap_used)]

use gesta_eval::claims::{Claims, for_language};

#[test]
fn spanish_sentences_are_found_by_their_family_and_no_others_are() {
    let claims = Claims::new(&[for_language("es").unwrap()]).unwrap();
    let mut family = "";
    let mut wrong = Vec::new();
    let mut sentences = 0;
    for (number, line) in include_str!("spanish.txt").lines().enumerate() {
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            family = name;
        } else if !line.starts_with('#') {
            sentences += 1;
            let found = claims.first(line);
            let seen = found.as_ref().map_or("nada", |it| it.family.as_str());
            if seen != family {
                wrong.push(format!("{}: `{line}` is {family}, and was found as {seen}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(sentences >= 150, "{sentences} sentences");
}
