//! `gesta eval claims`: verdicts, measures, language files.

use serde_json::{Value, json};

use crate::support::Home;

const REPLIES: &str = r#"{"id":"a","reply":"I've cancelled it.","turn_calls":[{"name":"cancel","write":true,"ok":true}]}
{"id":"b","reply":"Tu pedido ha sido cancelado.","turn_calls":[]}

{"id":"c","reply":"Shall I cancel it?","turn_calls":[]}
{"id":"d","reply":"All done!","turn_calls":[],"earlier_writes":[{"name":"cancel","ok":true}]}
"#;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_reply_gets_its_verdict_on_a_line() {
    let home = Home::new();
    let file = home.write("replies.jsonl", REPLIES);
    let said = home.gesta(&["eval", "claims", file.to_str().unwrap()]).ended(0);
    let verdicts = lines(&said.out);
    let short: Vec<_> =
        verdicts.iter().map(|it| json!([it["id"], it["claim"], it["backed"], it["language"]])).collect();
    let expected = json!([
        ["a", "change", "this_turn", "en"],
        ["b", "change", "no", "es"],
        ["c", "none", null, null],
        ["d", "change", "earlier", "en"]
    ]);
    assert_eq!(json!(short), expected);
    assert_eq!((&verdicts[0]["family"], &verdicts[0]["clause"]), (&json!("first_person"), &json!("I've cancelled it")));
    assert_eq!(home.gesta_with(&["eval", "claims", "-"], REPLIES).ended(0).out, said.out);
}

#[test]
fn a_bad_line_is_named_and_the_others_are_judged() {
    let home = Home::new();
    let file = home.write("replies.jsonl", &format!("{{\n{REPLIES}[]\n"));
    let said = home.gesta(&["eval", "claims", file.to_str().unwrap()]).ended(1);
    assert_eq!(lines(&said.out).len(), 4);
    assert!(said.err.contains("line 1: ") && said.err.contains("line 7: "), "{}", said.err);
    home.gesta(&["eval", "claims", "nowhere.jsonl"]).ended(2);
    home.gesta(&["eval", "claims"]).ended(2);
}

#[test]
fn labels_give_precision_recall_and_the_confusions() {
    let home = Home::new();
    let file = home.write("replies.jsonl", REPLIES);
    let labels = "{\"id\":\"a\",\"claim\":\"change\",\"supported\":\"yes\"}\n{\"id\":\"b\",\"claim\":\"state\"}\n\
                  {\"id\":\"c\",\"claim\":\"change\"}\n";
    let labels = home.write("labels.jsonl", labels);
    let words = ["eval", "claims", file.to_str().unwrap(), "--labels", labels.to_str().unwrap()];
    let report = lines(&home.gesta(&words).ended(0).out).pop().unwrap();
    let report = &report["report"];
    assert_eq!((&report["replies"], &report["precision"], &report["recall"]), (&json!(3), &json!(0.5), &json!(0.5)));
    assert_eq!(report["confusions"], json!({"change": {"change": 1, "none": 1}, "state": {"change": 1}}));
    assert_eq!(report["supported"], json!({"known": 1, "right": 1}));
    assert_eq!(report["differ"].as_array().unwrap().len(), 2);
}

#[test]
fn languages_are_exported_changed_and_used() {
    let home = Home::new();
    let folder = home.path("languages");
    let folder = folder.to_str().unwrap();
    home.gesta(&["eval", "claims", "--export", folder]).ended(0);
    let file = home.write("replies.jsonl", "{\"id\":\"a\",\"reply\":\"C'est fait.\"}\n");
    let words = ["eval", "claims", file.to_str().unwrap(), "--lang-dir", folder];
    assert_eq!(lines(&home.gesta(&words).ended(0).out)[0]["claim"], "none");

    let french = "language = \"fr\"\n[[patterns]]\nname = \"fait\"\nfamily = \"bare\"\nfind = \"c'est fait\"\n\
                  [examples]\nfires = { bare = [\"C'est fait !\"] }\nsilent = { question = [\"C'est fait ?\"] }\n";
    home.write("languages/fr.toml", french);
    assert_eq!(lines(&home.gesta(&words).ended(0).out)[0]["language"], "fr");

    home.write("languages/fr.toml", &french.replace("c'est fait\"", "(c'est fait\""));
    let said = home.gesta(&words).ended(2);
    assert!(said.err.contains("fr.toml:5: unclosed group"), "{}", said.err);
    home.write("languages/fr.toml", &french.replace("C'est fait !", "Non"));
    let said = home.gesta(&words).ended(2);
    assert!(said.err.contains("fr.toml:7: `Non` should be found as bare"), "{}", said.err);
}
