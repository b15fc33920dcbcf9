//! `catalog.json`: what the tenant sells, answers and is paid by (`spec/channel.md`, 22).

use super::entry::{self, Entry, unique};
use super::fault::Fault;

/// What stands in the catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Catalog {
    pub business_name: String,
    /// Three letters.
    pub currency: String,
    /// At least one.
    pub offerings: Vec<Offering>,
    pub faq: Vec<Answer>,
    pub payment_options: Vec<PaymentOption>,
}

/// One thing on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Offering {
    pub id: String,
    pub name: String,
    pub description: String,
    pub price: Price,
    /// As it was written, a number or none.
    pub duration_hours: Option<String>,
    pub schedule: Option<String>,
    pub url: Option<String>,
}

/// An amount in minor units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Price {
    pub amount: u64,
    pub currency: String,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Answer {
    pub question: String,
    pub answer: String,
}

/// A way to pay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PaymentOption {
    pub id: String,
    pub description: String,
}

pub(super) fn read(text: &str, faults: &mut Vec<Fault>) -> Catalog {
    let value = entry::file("catalog.json", text, faults);
    let mut top = Entry::new("catalog.json", String::new(), &value, faults);
    let business_name = top.text("business_name", faults);
    let currency = currency(&mut top, faults);
    let offerings: Vec<Offering> = top.list("offerings", faults).into_iter().map(|it| offering(it, faults)).collect();
    if top.is_there() && offerings.is_empty() {
        faults.push(top.fault("offerings", "has no entry", "describe at least one"));
    }
    let ids = |n: usize, id: &str| {
        let what = format!("`{id}` is there twice");
        (id.to_owned(), Fault::new("catalog.json", format!("/offerings/{n}/id"), what, "give it a name of its own"))
    };
    unique(&offerings.iter().enumerate().map(|(n, it)| ids(n, &it.id)).collect::<Vec<_>>(), faults);
    let faq = top.list("faq", faults).into_iter().map(|mut it| {
        let answer = Answer { question: it.text("question", faults), answer: it.text("answer", faults) };
        it.close(faults);
        answer
    });
    let faq = faq.collect();
    let mut named = Vec::new();
    let mut payment_options = Vec::new();
    for mut it in top.list("payment_options", faults) {
        let (id, description) = (it.text("id", faults), it.text("description", faults));
        let fault = it.fault("id", format!("`{id}` is there twice"), "give it a name of its own");
        named.push((id.clone(), fault));
        payment_options.push(PaymentOption { id, description });
        it.close(faults);
    }
    unique(&named, faults);
    top.close(faults);
    Catalog { business_name, currency, offerings, faq, payment_options }
}

fn currency(entry: &mut Entry<'_>, faults: &mut Vec<Fault>) -> String {
    let text = entry.text("currency", faults);
    let is_one = text.len() == 3 && text.chars().all(|c| c.is_ascii_alphabetic());
    if !text.is_empty() && !is_one {
        faults.push(entry.fault("currency", "is no currency", "write its three letters"));
    }
    text
}

fn offering(mut it: Entry<'_>, faults: &mut Vec<Fault>) -> Offering {
    let (id, name) = (it.id(faults), it.text("name", faults));
    let description = it.text("description", faults);
    let price = match it.inner("price", faults) {
        None => {
            if it.is_there() {
                faults.push(it.fault("price", "is missing", "add its amount in minor units and its currency"));
            }
            Price::default()
        }
        Some(mut price) => {
            let amount = price.whole("amount", (0, u64::MAX), faults);
            let currency = currency(&mut price, faults);
            if amount.is_none() && price.is_there() && price.get("amount").is_none() {
                faults.push(price.fault("amount", "is missing", "add it, in minor units"));
            }
            price.close(faults);
            Price { amount: amount.unwrap_or_default(), currency }
        }
    };
    let hours = it.number("duration_hours", |hours| hours > 0.0, "above 0", faults);
    let read = Offering {
        id,
        name,
        description,
        price,
        duration_hours: hours.map(|it| it.to_string()),
        schedule: it.optional_text("schedule", faults),
        url: it.optional_text("url", faults),
    };
    it.close(faults);
    read
}
