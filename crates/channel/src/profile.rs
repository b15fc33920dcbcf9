//! What each messenger can show, as data (`spec/channel.md`, 4).

use serde::{Deserialize, Serialize};

/// The messenger behind ManyChat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Messenger {
    #[default]
    Whatsapp,
    Instagram,
    Messenger,
    Telegram,
}

/// What a response to a messenger may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// The word in `CHANNEL` and in an inbound body.
    pub name: &'static str,
    /// `content.type`; none where the key is absent.
    pub kind: Option<&'static str>,
    /// Whether quick replies are shown; where not, their key is absent.
    pub quick_replies: bool,
    /// Buttons of one message.
    pub buttons_max: usize,
    /// Messages that are shown; what is beyond is joined to the last.
    pub messages_max: usize,
    /// Actions of one response.
    pub actions_max: usize,
}

/// Quick replies of one response, where they are shown.
pub const QUICK_REPLIES_MAX: usize = 11;

const fn profile(
    name: &'static str,
    kind: Option<&'static str>,
    quick: bool,
    buttons: usize,
    messages: usize,
) -> Profile {
    Profile { name, kind, quick_replies: quick, buttons_max: buttons, messages_max: messages, actions_max: 5 }
}

const PROFILES: [(Messenger, Profile); 4] = [
    (Messenger::Whatsapp, profile("whatsapp", Some("whatsapp"), false, 3, 1)),
    (Messenger::Instagram, profile("instagram", Some("instagram"), true, 3, 10)),
    (Messenger::Messenger, profile("messenger", None, true, 3, 10)),
    (Messenger::Telegram, profile("telegram", Some("telegram"), false, 10, 10)),
];

impl Messenger {
    /// What it can show.
    pub fn profile(self) -> Profile {
        PROFILES[self as usize].1
    }

    /// The messenger of a word, without case; none where it is not known.
    pub fn named(word: &str) -> Option<Self> {
        PROFILES.iter().find(|(_, it)| it.name.eq_ignore_ascii_case(word.trim())).map(|(messenger, _)| *messenger)
    }

    /// The words that [`Messenger::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PROFILES.iter().map(|(_, it)| it.name)
    }
}

impl Profile {
    /// Joins what is beyond the messenger's messages to the last one, with a blank line between (`spec/channel.md`, 4, and
    /// L15).
    pub fn fit(&self, messages: &[String]) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for message in messages {
            if out.len() == self.messages_max
                && let Some(last) = out.last_mut()
            {
                last.push_str("\n\n");
                last.push_str(message);
            } else {
                out.push(message.clone());
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_messenger_stands_in_its_own_place() {
        for (messenger, profile) in PROFILES {
            assert_eq!(messenger.profile(), profile);
            assert_eq!(Messenger::named(profile.name), Some(messenger));
        }
        assert_eq!(Messenger::named(" WhatsApp "), Some(Messenger::Whatsapp));
        assert_eq!(Messenger::named("sms"), None);
    }

    #[test]
    fn what_is_beyond_the_limit_is_joined_and_nothing_is_lost() {
        let messages: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
        assert_eq!(Messenger::Whatsapp.profile().fit(&messages[..3]), ["m0\n\nm1\n\nm2"]);
        let instagram = Messenger::Instagram.profile().fit(&messages);
        assert_eq!((instagram.len(), instagram[9].as_str()), (10, "m9\n\nm10\n\nm11"));
        assert!(Messenger::Telegram.profile().fit(&[]).is_empty());
    }
}
