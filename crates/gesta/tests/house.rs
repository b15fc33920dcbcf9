//! The rules of the house, so that a plain `cargo test` checks them too.

#[test]
fn the_house_is_tidy() {
    let tree = xtask::Tree::read(&xtask::root()).expect("the workspace can be read");
    let lines: Vec<String> = xtask::tidy::check(&tree).iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}
