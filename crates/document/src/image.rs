//! The image of a document: what is stored, signed, and opened again elsewhere (`spec/documents.md`, 3.9).
//!
//! ```text
//! gesta document 1
//! {"base":"…","added":[…],"data_bytes":123}
//! the data, then 32 bytes of SHA-256 over all before, then 32 bytes of HMAC-SHA-256 over all before that
//! ```
//!
//! Reading one checks its size, checksum and signature before anything in it is looked at. The data itself is the
//! engine's, and only a worker opens it.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{AddedTool, Record, base_hash};

/// Bytes of an image.
pub const IMAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The version that this program writes.
pub const IMAGE_VERSION: u32 = 1;

const MAGIC: &str = "gesta document ";
const CHECKSUM_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 32;

/// A document without its base: the base is the operator's and comes from the agent's folder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Image {
    /// The hash of the base under which the data was saved ([`base_hash`]).
    pub base: String,
    /// Tools that were added, oldest first.
    pub added: Vec<AddedTool>,
    /// The data, in the engine's own binary form.
    pub data: Option<Vec<u8>>,
}

/// Why an image cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// No image at all.
    #[error("this is no image of a document; `gesta document export` writes one")]
    Foreign,
    /// Of a version that this program does not know.
    #[error("the image has version {found} and this program reads up to {IMAGE_VERSION}; use the newer program")]
    Version {
        /// Its version.
        found: u32,
    },
    /// Too large.
    #[error("the image is larger than {IMAGE_BYTES_MAX} bytes; remove data or tools from the document")]
    Size,
    /// Its checksum does not fit.
    #[error("the image is damaged; take another copy of it, or go on with the base alone")]
    Damaged,
    /// No key fits its signature.
    #[error(
        "no key signed this image; put the key it was signed with into GESTA_SECRET behind the new one, or import it with --trust"
    )]
    Signature,
    /// No key to sign with.
    #[error("there is no key to sign with; set GESTA_SECRET")]
    NoKey,
}

/// What stands before the data.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    base: String,
    added: Vec<AddedTool>,
    /// Bytes of the data; none where there is no data.
    data_bytes: Option<usize>,
}

impl Image {
    /// The image of a record.
    pub fn of(record: &Record) -> Self {
        let base = record.data_base.clone().unwrap_or_else(|| base_hash(&record.base));
        Self { base, added: record.added.clone(), data: record.data.clone() }
    }

    /// The record of this image under a base, which may have changed since.
    pub fn record(self, base: &str) -> Record {
        Record { base: base.to_owned(), added: self.added, data: self.data, data_base: Some(self.base) }
    }

    /// Writes it, signed with the first key.
    ///
    /// # Errors
    /// There is no key, or it is larger than [`IMAGE_BYTES_MAX`].
    pub fn encode(&self, keys: &[&[u8]]) -> Result<Vec<u8>, ImageError> {
        let key = keys.first().ok_or(ImageError::NoKey)?;
        let head =
            Head { base: self.base.clone(), added: self.added.clone(), data_bytes: self.data.as_ref().map(Vec::len) };
        // Strings and numbers alone: writing them cannot fail.
        let head = serde_json::to_string(&head).map_err(|_| ImageError::Damaged)?;
        let mut bytes = format!("{MAGIC}{IMAGE_VERSION}\n{head}\n").into_bytes();
        bytes.extend_from_slice(self.data.as_deref().unwrap_or_default());
        let checksum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&checksum);
        let signature = signer(key, &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&signature);
        if bytes.len() > IMAGE_BYTES_MAX { Err(ImageError::Size) } else { Ok(bytes) }
    }

    /// Reads one that any of the keys signed.
    ///
    /// # Errors
    /// As [`ImageError`] says; nothing of a damaged or foreign image has been looked at.
    pub fn decode(bytes: &[u8], keys: &[&[u8]]) -> Result<Self, ImageError> {
        let (signed, signature) = checked(bytes)?;
        if !keys.iter().any(|key| signer(key, signed).verify_slice(signature).is_ok()) {
            return Err(ImageError::Signature);
        }
        read(signed)
    }

    /// Reads one whoever signed it: for what an operator imports with `--trust`.
    ///
    /// # Errors
    /// As [`ImageError`] says, but for the signature.
    pub fn decode_trusted(bytes: &[u8]) -> Result<Self, ImageError> {
        read(checked(bytes)?.0)
    }
}

fn signer(key: &[u8], bytes: &[u8]) -> Hmac<Sha256> {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    let mut signer = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    signer.update(bytes);
    signer
}

/// The signed part and the signature of bytes that are an image and undamaged.
fn checked(bytes: &[u8]) -> Result<(&[u8], &[u8]), ImageError> {
    if bytes.len() > IMAGE_BYTES_MAX {
        return Err(ImageError::Size);
    }
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(ImageError::Foreign)?;
    let digits = rest.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
    let version = rest.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let found: u32 = version.filter(|_| rest.get(digits) == Some(&b'\n')).ok_or(ImageError::Foreign)?;
    if found != IMAGE_VERSION {
        return Err(ImageError::Version { found });
    }
    let signed = bytes.len().checked_sub(SIGNATURE_BYTES).ok_or(ImageError::Damaged)?;
    let (signed, signature) = bytes.split_at(signed);
    let summed = signed.len().checked_sub(CHECKSUM_BYTES).ok_or(ImageError::Damaged)?;
    let (summed, checksum) = signed.split_at(summed);
    if Sha256::digest(summed).as_slice() != checksum {
        return Err(ImageError::Damaged);
    }
    Ok((signed, signature))
}

/// Reads what a signed part says.
fn read(signed: &[u8]) -> Result<Image, ImageError> {
    let body = signed.get(..signed.len().saturating_sub(CHECKSUM_BYTES)).ok_or(ImageError::Damaged)?;
    let mut lines = body.splitn(3, |byte| *byte == b'\n');
    let (_, head, data) = (lines.next(), lines.next(), lines.next());
    let (Some(head), Some(data)) = (head, data) else { return Err(ImageError::Damaged) };
    let head: Head = serde_json::from_slice(head).map_err(|_| ImageError::Damaged)?;
    let data = match head.data_bytes {
        Some(length) if length == data.len() => Some(data.to_vec()),
        None if data.is_empty() => None,
        _ => return Err(ImageError::Damaged),
    };
    Ok(Image { base: head.base, added: head.added, data })
}
