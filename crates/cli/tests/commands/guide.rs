//! The guide for writers of documents: its commands are run as they stand there.

use std::path::Path;
use std::process::Command;

use crate::support::Home;

#[test]
fn the_commands_of_the_guide_print_what_it_says() {
    let guide = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/documents.md"));
    let guide = guide.unwrap();
    let blocks = |kind: &str| -> Vec<String> {
        let mark = format!("```{kind}\n");
        let parts = guide.split(&mark).skip(1);
        parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
    };
    let home = Home::new();
    let documents = blocks("stof");
    home.write("tools.stof", &documents[0]);
    home.write("total_spent.stof", &documents[1]);
    assert_eq!(documents.len(), 2);
    let bin = Path::new(env!("CARGO_BIN_EXE_gesta")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    for block in blocks("console") {
        for command in block.split("$ ").skip(1) {
            let (line, expected) = command.split_once('\n').unwrap();
            let output = Command::new("sh")
                .args(["-c", line])
                .current_dir(home.path(""))
                .env("PATH", &path)
                .env("HOME", home.path(""))
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{line}");
            run += 1;
        }
    }
    assert_eq!(run, 4);
}
