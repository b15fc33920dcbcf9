//! Keys that sign what callers keep for us, such as the state of a saved run (`spec/contract.md`, 7.6).

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

use crate::error::StoreError;
use crate::folder::new_private_file;
use crate::sqlite::of_io;

/// The shortest key that is accepted, in bytes.
pub const KEY_BYTES_MIN: usize = 16;

/// The name of the file in the data folder that holds the key made at the first start.
pub(crate) const FILE: &str = "secret";

/// The keys of `GESTA_SECRET`: the first signs, all verify, so that a key can be changed without breaking what it
/// signed. Never shown: no `Debug`, no `Serialize`; wiped when dropped.
pub struct Secrets {
    keys: Vec<Zeroizing<Vec<u8>>>,
}

/// Why keys or signatures were refused. No key stands in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The list holds no key.
    #[error("GESTA_SECRET holds no key; set it to one or several keys, separated by commas, or remove it")]
    Empty,
    /// A key is too easy to guess.
    #[error("key {place} of GESTA_SECRET has {bytes} bytes, at least {KEY_BYTES_MIN} are needed; make a longer one")]
    TooShort {
        /// Which, from 1.
        place: usize,
        /// How long it is.
        bytes: usize,
    },
    /// The key file of the data folder holds no key that is long enough.
    #[error(
        "{path} has {bytes} bytes, at least {KEY_BYTES_MIN} are needed; bring back the key that was there, or remove the \
         file: a new key is made, and what the old one signed cannot be read any more",
        path = path.display()
    )]
    ShortFile {
        /// The file.
        path: std::path::PathBuf,
        /// How long the key in it is.
        bytes: usize,
    },
    /// What was signed was changed, or signed with a key that is not known here.
    #[error("the signature does not fit: it was changed, or signed with another GESTA_SECRET")]
    Forged,
    /// What should be signed is not in the form that [`Secrets::seal`] gives.
    #[error("this is no signed state")]
    Unsigned,
    /// The data folder or its key file can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Secrets {
    /// Reads a list of keys, separated by commas; white space around them does not count.
    ///
    /// # Errors
    /// [`SecretError::Empty`], [`SecretError::TooShort`].
    pub fn from_list(list: &str) -> Result<Self, SecretError> {
        let mut keys = Vec::new();
        for key in list.split(',').map(str::trim).filter(|key| !key.is_empty()) {
            if key.len() < KEY_BYTES_MIN {
                return Err(SecretError::TooShort { place: keys.len() + 1, bytes: key.len() });
            }
            keys.push(Zeroizing::new(key.as_bytes().to_vec()));
        }
        if keys.is_empty() { Err(SecretError::Empty) } else { Ok(Self { keys }) }
    }

    /// The keys, for what signs by itself: the first signs, all verify.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| key.as_slice())
    }

    /// The keys of a list, for instance `GESTA_SECRET`, or, without one, the key in the data folder, which is made at
    /// the first start: 256 random bits in a file that its owner alone may read.
    ///
    /// # Errors
    /// [`SecretError::Store`] when the key file can't be made or read, and those of [`Self::from_list`].
    pub fn load(list: Option<&str>, folder: &Path) -> Result<Self, SecretError> {
        match list {
            Some(list) => Self::from_list(list),
            None => {
                let key = key_file(folder)?;
                Self::from_list(&key).map_err(|why| match why {
                    SecretError::TooShort { .. } | SecretError::Empty => {
                        SecretError::ShortFile { path: folder.join(FILE), bytes: key.trim().len() }
                    }
                    other => other,
                })
            }
        }
    }

    /// Signs bytes with the first key: HMAC-SHA-256 in lower-case hexadecimal. `purpose` is part of what is signed, so
    /// that a signature for one use is none for another.
    pub fn sign(&self, purpose: &str, bytes: &[u8]) -> String {
        self.keys.first().map_or_else(String::new, |key| hex(&mac(key, purpose, bytes).finalize().into_bytes()))
    }

    /// Checks a signature with every key, in constant time for each.
    ///
    /// # Errors
    /// [`SecretError::Forged`].
    pub fn verify(&self, purpose: &str, bytes: &[u8], signature: &str) -> Result<(), SecretError> {
        let signature = unhex(signature).ok_or(SecretError::Forged)?;
        let known = self.keys.iter().any(|key| mac(key, purpose, bytes).verify_slice(&signature).is_ok());
        if known { Ok(()) } else { Err(SecretError::Forged) }
    }

    /// Puts the signature in front of a content that a caller is to keep.
    pub fn seal(&self, purpose: &str, content: &str) -> String {
        format!("gesta1.{}.{content}", self.sign(purpose, content.as_bytes()))
    }

    /// The content of what [`Self::seal`] gave out, if it is unchanged.
    ///
    /// # Errors
    /// [`SecretError::Unsigned`], [`SecretError::Forged`].
    pub fn unseal<'a>(&self, purpose: &str, sealed: &'a str) -> Result<&'a str, SecretError> {
        let (signature, content) =
            sealed.strip_prefix("gesta1.").and_then(|rest| rest.split_once('.')).ok_or(SecretError::Unsigned)?;
        self.verify(purpose, content.as_bytes(), signature)?;
        Ok(content)
    }
}

fn mac(key: &[u8], purpose: &str, bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("an HMAC takes keys of any length");
    mac.update(purpose.as_bytes());
    mac.update(&[0]);
    mac.update(bytes);
    mac
}

/// The key of the data folder. Written under another name and then linked, so that of two processes that start at once
/// one makes it and both read it whole.
fn key_file(folder: &Path) -> Result<Zeroizing<String>, StoreError> {
    let path = folder.join(FILE);
    let failed = |cause: &io::Error| of_io(&path, cause);
    // Reading a pipe would wait for ever.
    if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        let reason = "it is no regular file; move it away, or set GESTA_SECRET".to_owned();
        return Err(StoreError::Io { path, reason });
    }
    match fs::read_to_string(&path) {
        Ok(key) => return Ok(Zeroizing::new(key)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(failed(&cause)),
    }
    let draft = folder.join(format!("{FILE}.{}", uuid::Uuid::now_v7()));
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random)
        .map_err(|cause| StoreError::Io { path: path.clone(), reason: format!("no random numbers: {cause}") })?;
    let text = Zeroizing::new(hex(&random));
    random.zeroize();
    let written = new_private_file(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let linked = written.and_then(|()| match fs::hard_link(&draft, &path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    let _ = fs::remove_file(&draft);
    linked.map_err(|cause| failed(&cause))?;
    fs::read_to_string(&path).map(Zeroizing::new).map_err(|cause| failed(&cause))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    digits?
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "an old key of some length";
    const NEW: &str = "a new key of some length!";

    fn refusal<T>(result: Result<T, SecretError>) -> SecretError {
        result.err().expect("it is refused")
    }

    #[test]
    fn what_was_sealed_is_unsealed_and_what_was_changed_is_refused() {
        let secrets = Secrets::from_list(OLD).unwrap();
        let sealed = secrets.seal("state", "{\"run\":\"r1\"}");
        assert_eq!(secrets.unseal("state", &sealed).unwrap(), "{\"run\":\"r1\"}");
        for forged in [sealed.replace("r1", "r2"), format!("{sealed} "), sealed.replace("gesta1.", "gesta1.0")] {
            assert_eq!(refusal(secrets.unseal("state", &forged)), SecretError::Forged, "{forged}");
        }
        assert_eq!(refusal(secrets.unseal("document", &sealed)), SecretError::Forged);
        for unsigned in ["", "{\"run\":\"r1\"}", "gesta1.abc"] {
            assert_eq!(refusal(secrets.unseal("state", unsigned)), SecretError::Unsigned, "{unsigned}");
        }
    }

    #[test]
    fn the_first_key_signs_and_all_verify() {
        let old = Secrets::from_list(OLD).unwrap();
        let both = Secrets::from_list(&format!(" {NEW} , {OLD},")).unwrap();
        let sealed = old.seal("state", "x");
        assert_eq!(both.unseal("state", &sealed).unwrap(), "x");
        assert_eq!(refusal(old.unseal("state", &both.seal("state", "x"))), SecretError::Forged);
    }

    #[test]
    fn the_signature_is_hmac_sha_256() {
        // RFC 4231 knows no purpose; computed with another implementation over "p", a zero byte and "m".
        let secrets = Secrets::from_list("0123456789abcdef").unwrap();
        assert_eq!(secrets.sign("p", b"m"), "9252f6aa8381ed5f7506eb166a3a31f8984e0f6470a48c624cde53690d6e28c4");
    }

    #[test]
    fn keys_that_are_missing_or_short_are_refused_without_being_shown() {
        assert_eq!(refusal(Secrets::from_list(" , ")), SecretError::Empty);
        let short = refusal(Secrets::from_list(&format!("{OLD},hunter2")));
        assert_eq!(short, SecretError::TooShort { place: 2, bytes: 7 });
        assert!(!short.to_string().contains("hunter2"));
    }

    #[test]
    fn without_a_list_a_key_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let made: Vec<Secrets> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Secrets::load(None, folder.path()).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let sealed = made[0].seal("state", "x");
        for secrets in &made {
            assert_eq!(secrets.unseal("state", &sealed).unwrap(), "x");
        }
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.path().join("secret")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_folder_without_a_place_for_the_key_is_said_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none");
        let refused = refusal(Secrets::load(None, &missing));
        assert!(refused.to_string().contains("none"), "{refused}");
    }
}
