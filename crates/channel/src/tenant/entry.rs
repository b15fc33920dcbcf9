//! Reads objects of tenant files: both spellings of a key, nothing unknown, every fault collected with its pointer.

use gesta_run::json::{Object, read_strict};
use serde_json::Value;

use super::fault::Fault;

/// One object of a file, and where it stands.
pub(super) struct Entry<'a> {
    pub(super) file: &'static str,
    pub(super) pointer: String,
    object: Option<&'a Object>,
    asked: Vec<&'static str>,
}

/// Reads a whole file; a file that is no object is one fault.
pub(super) fn file(name: &'static str, text: &str, faults: &mut Vec<Fault>) -> Value {
    match read_strict(text) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) => {
            faults.push(Fault::new(name, "", "is no JSON object", "begin it with `{` and end it with `}`"));
            Value::Null
        }
        Err(why) => {
            faults.push(Fault::new(name, "", format!("is no JSON: {why}"), "mend it at that place"));
            Value::Null
        }
    }
}

/// `flowNs` becomes `flow_ns`.
fn snake(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 2);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn camel(key: &str) -> String {
    let mut parts = key.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let mut chars = part.chars();
        out + &chars.next().map(|c| c.to_ascii_uppercase().to_string()).unwrap_or_default() + chars.as_str()
    })
}

impl<'a> Entry<'a> {
    pub(super) fn new(file: &'static str, pointer: String, value: &'a Value, faults: &mut Vec<Fault>) -> Self {
        let object = value.as_object();
        // Of a whole file that is none, it was said already.
        if object.is_none() && !(pointer.is_empty() && value.is_null()) {
            faults.push(Fault::new(file, pointer.clone(), "is no object", "write one in braces"));
        }
        Self { file, pointer, object, asked: Vec::new() }
    }

    /// Whether anything can be read here: what is missing in what is no object is not worth a fault.
    pub(super) fn is_there(&self) -> bool {
        self.object.is_some()
    }

    /// The pointer to a key, as the file spells it.
    pub(super) fn at(&self, key: &str) -> String {
        let camel = camel(key);
        let spelt = self.object.filter(|it| it.contains_key(&camel)).map_or(key, |_| camel.as_str());
        format!("{}/{spelt}", self.pointer)
    }

    pub(super) fn fault(&self, key: &str, what: impl Into<String>, way_out: impl Into<String>) -> Fault {
        Fault::new(self.file, self.at(key), what, way_out)
    }

    /// The value of a key in either spelling.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.push(key);
        let object = self.object?;
        object.get(key).or_else(|| object.get(&camel(key)))
    }

    /// A key that belongs to something that is not built yet: refused, never ignored.
    pub(super) fn later(&mut self, key: &'static str, what: &str, faults: &mut Vec<Fault>) {
        let empty = |it: &Value| it.as_array().is_some_and(Vec::is_empty);
        if self.get(key).is_some_and(|it| !empty(it)) {
            let what = format!("is known and cannot be had yet: {what}");
            faults.push(self.fault(key, what, "leave it out until this version has it"));
        }
    }

    /// A text that must be there and not blank.
    pub(super) fn text(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> String {
        match self.optional_text(key, faults) {
            Some(text) => text,
            None => {
                if self.is_there()
                    && !self.object.is_some_and(|it| it.contains_key(key) || it.contains_key(&camel(key)))
                {
                    faults.push(self.fault(key, "is missing", "add it"));
                }
                String::new()
            }
        }
    }

    /// A text that may be left out, and is not blank where it stands.
    pub(super) fn optional_text(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> Option<String> {
        match self.get(key)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            _ => {
                faults.push(self.fault(key, "is no text, or blank", "write a text in quotes"));
                None
            }
        }
    }

    pub(super) fn flag(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> bool {
        match self.get(key) {
            None => false,
            Some(Value::Bool(it)) => *it,
            Some(_) => {
                faults.push(self.fault(key, "is no boolean", "write true or false"));
                false
            }
        }
    }

    /// A whole number within its bounds, both allowed.
    pub(super) fn whole(&mut self, key: &'static str, (min, max): (u64, u64), faults: &mut Vec<Fault>) -> Option<u64> {
        let value = self.get(key)?;
        let number = value.as_u64().filter(|it| (min..=max).contains(it));
        if number.is_none() {
            let way_out = if max == u64::MAX { format!("{min} or more") } else { format!("from {min} to {max}") };
            faults.push(self.fault(key, "is out of bounds", format!("write a whole number, {way_out}")));
        }
        number
    }

    /// A number that the test accepts; `bounds` says which those are.
    pub(super) fn number(
        &mut self,
        key: &'static str,
        fits: fn(f64) -> bool,
        bounds: &str,
        faults: &mut Vec<Fault>,
    ) -> Option<f64> {
        let value = self.get(key)?;
        let number = value.as_f64().filter(|it| it.is_finite() && fits(*it));
        if number.is_none() {
            faults.push(self.fault(key, "is out of bounds", format!("write a number {bounds}")));
        }
        number
    }

    /// The objects of a list, each with its pointer; an absent list is empty.
    pub(super) fn list(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> Vec<Entry<'a>> {
        let values = match self.get(key) {
            None => return Vec::new(),
            Some(Value::Array(values)) => values,
            Some(_) => {
                faults.push(self.fault(key, "is no list", "write one in brackets"));
                return Vec::new();
            }
        };
        let at = self.at(key);
        let entries = values.iter().enumerate();
        entries.map(|(n, value)| Entry::new(self.file, format!("{at}/{n}"), value, faults)).collect()
    }

    /// The texts of a list, none blank and none twice.
    pub(super) fn texts(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> Vec<String> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let Some(values) = value.as_array() else {
            faults.push(self.fault(key, "is no list", "write one in brackets"));
            return Vec::new();
        };
        let mut texts: Vec<String> = Vec::new();
        for (n, value) in values.iter().enumerate() {
            let at = format!("{}/{n}", self.at(key));
            match value.as_str().filter(|it| !it.trim().is_empty()) {
                None => faults.push(Fault::new(self.file, at, "is no text, or blank", "write a text in quotes")),
                Some(text) if texts.iter().any(|it| it == text) => {
                    faults.push(Fault::new(self.file, at, format!("`{text}` is there twice"), "keep one of them"));
                }
                Some(text) => texts.push(text.to_owned()),
            }
        }
        texts
    }

    /// An object within this one, where there is one.
    pub(super) fn inner(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> Option<Entry<'a>> {
        let value = self.get(key)?;
        Some(Entry::new(self.file, self.at(key), value, faults))
    }

    /// An id: lower-case letters, digits, `_` and `-`, beginning with a letter or digit.
    pub(super) fn id(&mut self, faults: &mut Vec<Fault>) -> String {
        let id = self.text("id", faults);
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if !id.is_empty() && (!id.chars().all(fits) || id.starts_with(['_', '-'])) {
            let way_out = "use lower-case letters, digits, `_` and `-`, and begin with a letter or digit";
            faults.push(self.fault("id", format!("`{id}` is no id"), way_out));
        }
        id
    }

    /// Whatever was not asked for is unknown, and no key may stand there in both spellings.
    pub(super) fn close(self, faults: &mut Vec<Fault>) {
        for key in self.object.into_iter().flat_map(Object::keys) {
            let name = snake(key);
            let pointer = format!("{}/{}", self.pointer, key.replace('~', "~0").replace('/', "~1"));
            let spelt = *key == name || *key == camel(&name);
            if !spelt || !self.asked.contains(&name.as_str()) {
                let way_out = format!("leave it out; known here: {}", self.asked.join(", "));
                faults.push(Fault::new(self.file, pointer, "is unknown", way_out));
            } else if *key != name && self.object.is_some_and(|it| it.contains_key(&name)) {
                let what = format!("is there as `{name}` too");
                faults.push(Fault::new(self.file, pointer, what, "keep one of the two spellings"));
            }
        }
    }
}

/// Ids of one list, and of those that share their names, are there once.
pub(super) fn unique(ids: &[(String, Fault)], faults: &mut Vec<Fault>) {
    for (at, (id, fault)) in ids.iter().enumerate() {
        if !id.is_empty() && ids[..at].iter().any(|(before, _)| before == id) {
            faults.push(fault.clone());
        }
    }
}
