//! Schemas of plain words, read here: most tools have no other, and what they accept is known without a validator.

use serde_json::{Map, Number, Value};

/// A schema of plain words. It only ever says yes: what it does not accept is put to the whole validator, which also
/// finds the words for what is wrong.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Nothing fits.
    never: bool,
    types: Option<Vec<Type>>,
    options: Option<Vec<Value>>,
    required: Vec<String>,
    properties: Vec<(String, Plain)>,
    /// For properties that are not listed.
    additional: Option<Box<Plain>>,
    items: Option<Box<Plain>>,
    any_of: Option<Vec<Plain>>,
    all_of: Vec<Plain>,
    numbers: Range<i64>,
    characters: Range<u64>,
    entries: Range<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    List,
    Object,
}

/// From the least to the most that is allowed.
#[derive(Debug)]
struct Range<T> {
    least: Option<T>,
    most: Option<T>,
}

impl<T> Default for Range<T> {
    fn default() -> Self {
        Self { least: None, most: None }
    }
}

impl<T: PartialOrd> Range<T> {
    fn has(&self, it: &T) -> bool {
        self.least.as_ref().is_none_or(|least| it >= least) && self.most.as_ref().is_none_or(|most| it <= most)
    }

    fn is_open(&self) -> bool {
        self.least.is_none() && self.most.is_none()
    }
}

impl Plain {
    /// Reads a schema; none where it has any other word, or one that is not used as every draft would have it.
    pub(super) fn read(schema: &Value) -> Option<Self> {
        match schema {
            Value::Bool(accepts) => Some(Self { never: !accepts, ..Self::default() }),
            Value::Object(words) => {
                let mut plain = Self::default();
                words.iter().all(|(word, value)| plain.word(word, value).is_some()).then_some(plain)
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    fn word(&mut self, word: &str, value: &Value) -> Option<()> {
        match word {
            "title" | "description" | "format" if value.is_string() => {}
            "default" => {}
            "type" => self.types = Some(types(value)?),
            "const" if self.options.is_none() => self.options = Some(vec![value.clone()]),
            "enum" if self.options.is_none() => self.options = Some(distinct(value.as_array()?)?.to_vec()),
            "required" => {
                let names = distinct(value.as_array()?)?.iter();
                self.required = names.map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
            }
            "properties" => {
                let named = value.as_object()?.iter();
                self.properties =
                    named.map(|(name, it)| Some((name.clone(), Self::read(it)?))).collect::<Option<_>>()?;
            }
            "additionalProperties" => self.additional = Some(Box::new(Self::read(value)?)),
            "items" => self.items = Some(Box::new(Self::read(value)?)),
            "anyOf" => self.any_of = Some(list(value)?),
            "allOf" => self.all_of = list(value)?,
            "minimum" => self.numbers.least = Some(whole(value.as_number()?)?),
            "maximum" => self.numbers.most = Some(whole(value.as_number()?)?),
            "minLength" => self.characters.least = Some(value.as_u64()?),
            "maxLength" => self.characters.most = Some(value.as_u64()?),
            "minItems" => self.entries.least = Some(value.as_u64()?),
            "maxItems" => self.entries.most = Some(value.as_u64()?),
            _ => return None,
        }
        Some(())
    }

    /// Whether the value fits for sure.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.fits_in_general(|kind| kind.has(value), |option| option == value)
            && self.any_of.as_ref().is_none_or(|list| list.iter().any(|it| it.accepts(value)))
            && self.all_of.iter().all(|it| it.accepts(value))
            && match value {
                Value::Null | Value::Bool(_) => true,
                Value::Number(number) => {
                    self.numbers.is_open() || whole(number).is_some_and(|it| self.numbers.has(&it))
                }
                Value::String(text) => self.characters.is_open() || self.characters.has(&(text.chars().count() as u64)),
                Value::Array(list) => {
                    self.entries.has(&(list.len() as u64))
                        && self.items.as_ref().is_none_or(|items| list.iter().all(|it| items.accepts(it)))
                }
                Value::Object(object) => self.accepts_entries(object),
            }
    }

    /// The same of an object that is not wrapped into a value.
    pub(super) fn accepts_object(&self, object: &Map<String, Value>) -> bool {
        let is_one = |option: &Value| option.as_object() == Some(object);
        self.fits_in_general(|kind| kind == Type::Object, is_one)
            && self.any_of.as_ref().is_none_or(|list| list.iter().any(|it| it.accepts_object(object)))
            && self.all_of.iter().all(|it| it.accepts_object(object))
            && self.accepts_entries(object)
    }

    fn fits_in_general(&self, is_of: impl Fn(Type) -> bool, is_one: impl Fn(&Value) -> bool) -> bool {
        !self.never
            && self.types.as_ref().is_none_or(|types| types.iter().any(|kind| is_of(*kind)))
            && self.options.as_ref().is_none_or(|options| options.iter().any(is_one))
    }

    fn accepts_entries(&self, object: &Map<String, Value>) -> bool {
        let listed = |name: &String| self.properties.iter().find(|(known, _)| known == name).map(|(_, it)| it);
        self.required.iter().all(|name| object.contains_key(name))
            && object.iter().all(|(name, value)| match listed(name).or(self.additional.as_deref()) {
                Some(schema) => schema.accepts(value),
                None => true,
            })
    }
}

impl Type {
    fn has(self, value: &Value) -> bool {
        match value {
            Value::Null => self == Self::Null,
            Value::Bool(_) => self == Self::Boolean,
            Value::Number(number) => self == Self::Number || self == Self::Integer && !number.is_f64(),
            Value::String(_) => self == Self::Text,
            Value::Array(_) => self == Self::List,
            Value::Object(_) => self == Self::Object,
        }
    }
}

fn types(value: &Value) -> Option<Vec<Type>> {
    let read = |name: &Value| {
        Some(match name.as_str()? {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "string" => Type::Text,
            "array" => Type::List,
            "object" => Type::Object,
            _ => return None,
        })
    };
    match value.as_array() {
        Some(names) => distinct(names)?.iter().map(read).collect(),
        None => Some(vec![read(value)?]),
    }
}

/// A list that every draft takes where it wants distinct entries: not empty, and none twice.
fn distinct(list: &[Value]) -> Option<&[Value]> {
    let twice = list.iter().enumerate().any(|(at, it)| list[..at].contains(it));
    (!list.is_empty() && !twice).then_some(list)
}

fn list(value: &Value) -> Option<Vec<Plain>> {
    let list = value.as_array().filter(|list| !list.is_empty())?;
    list.iter().map(Plain::read).collect()
}

/// An integer of 64 bits, also where it is written with a point; other numbers are left to the validator.
fn whole(number: &Number) -> Option<i64> {
    const EXACT_MAX: f64 = 9e15;
    #[allow(clippy::cast_possible_truncation)]
    number
        .as_i64()
        .or_else(|| number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < EXACT_MAX).map(|it| it as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema;

    const SEEDS: u64 = 400;
    const VALUES: usize = 60;

    fn pick<'a, T>(dice: &mut fastrand::Rng, list: &'a [T]) -> &'a T {
        &list[dice.usize(..list.len())]
    }

    /// Values that schemas of few words often accept, and often do not.
    fn value(dice: &mut fastrand::Rng, depth: u32) -> Value {
        match dice.u32(..if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => dice.bool().into(),
            2 => pick(dice, &[json!(0), json!(1), json!(-3), json!(7), json!(u64::MAX), json!(i64::MIN)]).clone(),
            3 => pick(dice, &[json!(1.0), json!(0.5), json!(-0.0), json!(1e300), json!(7.0)]).clone(),
            4 => pick(dice, &["", "a", "ab", "é€😀", "mon"]).to_string().into(),
            5 => (0..dice.usize(..4)).map(|_| value(dice, depth - 1)).collect(),
            _ => {
                let names = (0..dice.usize(..4)).map(|_| pick(dice, &["a", "b", "c"]).to_string()).collect::<Vec<_>>();
                Value::Object(names.into_iter().map(|name| (name, value(dice, depth - 1))).collect())
            }
        }
    }

    const WORDS: [&str; 22] = [
        "type",
        "enum",
        "const",
        "required",
        "properties",
        "additionalProperties",
        "items",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "format",
        "description",
        "default",
        "pattern",
    ];

    /// What stands beside a word; now and then something that may not.
    fn operand(dice: &mut fastrand::Rng, word: &str, depth: u32) -> Value {
        if dice.u32(..40) == 0 {
            return value(dice, 1);
        }
        const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
        match word {
            "type" if dice.bool() => (*pick(dice, &TYPES)).into(),
            "type" => (0..dice.usize(..3)).map(|_| Value::from(*pick(dice, &TYPES))).collect(),
            "enum" => (0..dice.usize(..4)).map(|_| value(dice, 1)).collect(),
            "required" => (0..dice.usize(..3)).map(|_| Value::from(*pick(dice, &["a", "b", "c"]))).collect(),
            "properties" => {
                Value::Object(["a", "b"].iter().map(|name| ((*name).to_owned(), schema(dice, depth))).collect())
            }
            "additionalProperties" | "items" | "not" => schema(dice, depth),
            "anyOf" | "allOf" | "oneOf" => (0..dice.usize(1..3)).map(|_| schema(dice, depth)).collect(),
            "minimum" | "maximum" => {
                pick(dice, &[json!(0), json!(1.0), json!(-3), json!(0.5), json!(u64::MAX)]).clone()
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" => dice.u32(..4).into(),
            "uniqueItems" => dice.bool().into(),
            "description" | "format" | "pattern" => "date".into(),
            _ => value(dice, 1),
        }
    }

    fn schema(dice: &mut fastrand::Rng, depth: u32) -> Value {
        if depth == 0 || dice.u32(..12) == 0 {
            return if dice.bool() { dice.bool().into() } else { json!({"type": "string"}) };
        }
        let words: Vec<&str> = (0..dice.usize(..5)).map(|_| *pick(dice, &WORDS)).collect();
        Value::Object(words.into_iter().map(|word| (word.to_owned(), operand(dice, word, depth - 1))).collect())
    }

    fn has_float(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.as_i64().is_none(),
            Value::Array(list) => list.iter().any(has_float),
            Value::Object(object) => object.values().any(has_float),
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }

    #[test]
    fn what_is_accepted_here_the_validator_accepts_and_of_whole_numbers_all_of_it() {
        let (mut read, mut accepted, mut refused) = (0, 0, 0);
        for seed in 0..SEEDS {
            let dice = &mut fastrand::Rng::with_seed(seed);
            let schema = schema(dice, 3);
            let Some(plain) = Plain::read(&schema) else { continue };
            read += 1;
            let whole = schema::validator(&schema).unwrap_or_else(|why| panic!("{schema} is read, and is none: {why}"));
            for _ in 0..VALUES {
                let value = value(dice, 3);
                let fits = whole.is_valid(&value);
                if plain.accepts(&value) {
                    assert!(fits, "{schema} accepts {value} here");
                    accepted += 1;
                } else {
                    assert!(!fits || has_float(&value) || has_float(&schema), "{schema} does not accept {value} here");
                    refused += 1;
                }
                if let Value::Object(object) = &value {
                    assert_eq!(plain.accepts(&value), plain.accepts_object(object), "{schema} and {value}");
                }
            }
        }
        assert!(read > 40 && accepted > 200 && refused > 200, "{read} read, {accepted} accepted, {refused} refused");
    }

    #[test]
    fn the_schema_of_a_typed_tool_is_plain() {
        let typed = json!({"type": "object", "required": ["day", "count"], "properties": {
            "day": {"type": "string", "description": "The day."}, "note": {"type": ["string", "null"]},
            "count": {"type": "integer", "format": "uint32", "minimum": 0},
        }});
        let plain = Plain::read(&typed).expect("all its words are plain");
        assert!(plain.accepts(&json!({"day": "mon", "count": 3, "note": null})));
        for other in [json!({"day": "mon"}), json!({"day": 1, "count": 3}), json!({"day": "mon", "count": -1})] {
            assert!(!plain.accepts(&other), "{other}");
        }
        for other in ["$ref", "$schema", "patternProperties", "if", "dependentRequired"] {
            assert!(Plain::read(&json!({other: "x"})).is_none(), "{other}");
        }
    }
}
