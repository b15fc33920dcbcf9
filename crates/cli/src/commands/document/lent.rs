//! Grants of the command line: each gives one answer, whatever it is asked.

use std::str::FromStr;
use std::sync::Mutex;

use gesta_document::{GrantName, GrantSpec};
use gesta_run::json::Object;
use gesta_sandbox::{GrantFuture, Grants};
use serde_json::Value;

/// `App.refund=JSON`, or `App.refund(order_id, amount)=error:TEXT`.
#[derive(Debug, Clone)]
pub(super) struct Lent {
    spec: GrantSpec,
    answer: Result<Value, String>,
}

impl FromStr for Lent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (left, answer) = text.split_once('=').ok_or("write NAME=JSON, for instance App.orders=[]")?;
        let (name, params) = match left.split_once('(') {
            Some((name, rest)) => (name, rest.trim_end().strip_suffix(')').ok_or("the `)` is missing")?),
            None => (left, ""),
        };
        let (library, name) = name.trim().split_once('.').ok_or("a grant has a library, for instance App.orders")?;
        let params = params.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let name = GrantName { library: library.to_owned(), name: name.to_owned() };
        let answer = match answer.strip_prefix("error:") {
            Some(text) => Err(text.trim().to_owned()),
            None => {
                let json = serde_json::from_str(answer);
                Ok(json.map_err(|why| {
                    format!("no JSON ({why}); a text is written in \"quotes\", a throw as error:TEXT")
                })?)
            }
        };
        Ok(Self { spec: GrantSpec { name, params }, answer })
    }
}

impl Lent {
    pub(super) fn spec(&self) -> GrantSpec {
        self.spec.clone()
    }
}

/// The grants of one command, and what was asked of them.
#[derive(Debug)]
pub(super) struct Desk {
    lent: Vec<Lent>,
    asked: Mutex<Vec<(GrantName, Object)>>,
}

impl Desk {
    pub(super) fn new(lent: Vec<Lent>) -> Self {
        Self { lent, asked: Mutex::default() }
    }

    /// What was asked, in order, since this was last looked at.
    pub(super) fn take_asked(&self) -> Vec<(GrantName, Object)> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Grants for Desk {
    fn call(&self, _n: u32, grant: GrantName, arguments: Object) -> GrantFuture<'_> {
        let lent = self.lent.iter().find(|lent| lent.spec.name == grant);
        let answer = lent.map(|lent| lent.answer.clone());
        let answer = answer.unwrap_or_else(|| Err(format!("grant {grant} is not available")));
        self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((grant, arguments));
        Box::pin(std::future::ready(answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_grant_is_a_name_and_its_answer() {
        for (text, name, params, answer) in [
            ("App.orders=[1]", "App.orders", vec![], Ok(json!([1]))),
            ("App.refund(id, amount)=\"a=b\"", "App.refund", vec!["id", "amount"], Ok(json!("a=b"))),
            ("App.refund=error: over 100", "App.refund", vec![], Err("over 100".to_owned())),
        ] {
            let lent: Lent = text.parse().unwrap();
            assert_eq!((lent.spec.name.to_string().as_str(), lent.answer), (name, answer), "{text}");
            assert_eq!(lent.spec.params, params, "{text}");
        }
        for text in ["App.orders", "orders=[]", "App.orders=no json", "App.orders(a=[]"] {
            assert!(text.parse::<Lent>().is_err(), "{text}");
        }
    }
}
