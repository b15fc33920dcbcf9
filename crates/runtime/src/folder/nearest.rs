//! The known word nearest to one that was mistyped.

/// The known word that takes the fewest edits to reach, where it is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let reach = (word.chars().count() / 3).max(1) + 1;
    let scored = known.into_iter().map(|it| (distance(&lower, &it.to_lowercase()), it));
    scored.min_by_key(|(edits, _)| *edits).filter(|(edits, _)| *edits <= reach).map(|(_, it)| it)
}

/// How many characters must be added, taken away or replaced. Words longer than 64 characters count as far away.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_foreign_word_is_not() {
        assert_eq!(nearest("tim_limit", ["name", "time_limit"]), Some("time_limit"));
        assert_eq!(nearest("TripsMax", ["tokens_max", "trips_max"]), Some("trips_max"));
        assert_eq!(nearest("colour", ["name", "url"]), None);
    }
}
