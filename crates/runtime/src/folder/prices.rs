//! What models cost: a dated table that a file of the folder overrides (`spec/contract.md`, 2.12).

use std::collections::BTreeMap;

use gesta_run::plan::Prices;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::shape;
use super::source::Source;

/// The built-in table.
const BUILT_IN: &str = include_str!("prices.toml");

/// A price file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// The day on which it was written.
    #[serde(default)]
    pub written: String,
    /// Models by `provider:model`. A name also stands for its dated and `-latest` forms.
    #[serde(default)]
    pub models: BTreeMap<String, ModelPrice>,
}

/// One model's line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// US dollars for a million input tokens.
    #[schemars(range(min = 0.0))]
    pub input: f64,
    /// US dollars for a million output tokens.
    #[schemars(range(min = 0.0))]
    pub output: f64,
    /// US dollars for a million input tokens read from the provider's cache; the input price where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cached: Option<f64>,
    /// Tokens of the model's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub window: Option<u64>,
}

impl ModelPrice {
    /// The price alone.
    pub fn prices(&self) -> Prices {
        Prices { input: self.input, output: self.output, cached: self.cached }
    }
}

impl PriceTable {
    /// The table that this version was built with.
    pub fn built_in() -> Self {
        toml::from_str(BUILT_IN).expect("the built-in price table is read by a test")
    }

    /// Reads a price file.
    ///
    /// # Errors
    /// What is wrong with it, each with its place.
    pub(crate) fn parse(file: &str, text: String) -> Result<Self, Vec<Problem>> {
        let source = Source::parse(file, text)?;
        let schema = schemars::schema_for!(Self).to_value();
        let problems = shape::check(&source, &schema);
        if !problems.is_empty() {
            return Err(problems);
        }
        serde_json::from_value(source.root.to_json()).map_err(|why| vec![Problem::new(file, why.to_string())])
    }

    /// The line of a model (`provider:model`): its own, or that of the name it is a dated form of.
    pub fn of(&self, model: &str) -> Option<ModelPrice> {
        let dated = |name: &str| model.strip_prefix(name).is_some_and(is_version);
        let longest = self.models.iter().filter(|(name, _)| dated(name)).max_by_key(|(name, _)| name.len());
        self.models.get(model).or(longest.map(|(_, price)| price)).copied()
    }
}

/// `-latest`, `-2025-08-07`, `-20250929`, `@20250929`.
fn is_version(suffix: &str) -> bool {
    let Some(rest) = suffix.strip_prefix(['-', '@']) else { return false };
    let date = rest.len() >= 4 && rest.chars().all(|c| c.is_ascii_digit() || c == '-');
    rest == "latest" || date
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_passes_its_own_check() {
        let table = PriceTable::parse("prices.toml", BUILT_IN.to_owned()).unwrap();
        assert_eq!(table, PriceTable::built_in());
        assert!(table.written.starts_with("20"));
    }

    #[test]
    fn a_dated_name_has_the_price_of_its_model_and_no_other() {
        let text = "[models.\"openai:m\"]\ninput = 1\noutput = 2\n[models.\"openai:m-mini\"]\ninput = 3\noutput = 4";
        let table = PriceTable::parse("p", text.to_owned()).unwrap();
        let cases = [
            ("openai:m", Some(1.0)),
            ("openai:m-2025-08-07", Some(1.0)),
            ("openai:m-latest", Some(1.0)),
            ("openai:m-mini-20250807", Some(3.0)),
            ("openai:m-large", None),
            ("openai:m1", None),
            ("azure:m", None),
        ];
        for (model, input) in cases {
            assert_eq!(table.of(model).map(|price| price.input), input, "{model}");
        }
    }

    #[test]
    fn a_wrong_price_file_is_told_with_its_place() {
        let wrong = PriceTable::parse("p.toml", "[models.a]\ninput = -1\noutput = 2\n".to_owned()).unwrap_err();
        assert_eq!(wrong[0].to_string(), "p.toml:2:9: models.a.input: must be 0 or more");
    }
}
