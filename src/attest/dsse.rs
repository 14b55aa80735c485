//! DSSE envelopes: a payload and signatures over its pre-authentication
//! encoding.
//!
//! The verified bytes flow on: the payload is decoded once, its signature is
//! checked over exactly those bytes, and they alone are parsed.

use std::borrow::Cow;

use crate::{
    base64::{self, Alphabet, Base64Fault},
    escape::{self, Out},
    fault::{Fault, SignatureReason, StatementReason},
    json::{Json, JsonFault},
    key::{PublicKey, SigningKey},
};

/// The only payload type.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Most signatures an envelope may carry. More than any honest writer adds, and
/// few enough that a line of them costs no long verification.
pub const MAX_SIGNATURES: usize = 64;

/// An envelope as written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Envelope<'a> {
    /// The type of the payload.
    pub payload_type: Cow<'a, str>,
    /// The payload's base64 text, not decoded.
    pub payload: Cow<'a, str>,
    /// The signatures; `None` is written `null` and never signed.
    pub signatures: Option<Vec<Signature<'a>>>,
}

/// One signature of an envelope.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Signature<'a> {
    /// The key's ID; may be empty.
    pub keyid: Cow<'a, str>,
    /// The signature's base64 text, not decoded.
    pub sig: Cow<'a, str>,
}

/// How strictly an envelope's members are read.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Members {
    /// A line's: every member, `null` for signatures.
    Exact,
    /// A foreign envelope's: a signature may leave out its key ID.
    Foreign,
}

/// Why an envelope could not be read.
pub(crate) enum EnvelopeFault {
    Json(JsonFault),
    Missing(&'static str, usize),
    TooMany(usize),
}

impl From<JsonFault> for EnvelopeFault {
    fn from(fault: JsonFault) -> Self {
        EnvelopeFault::Json(fault)
    }
}

impl<'a> Envelope<'a> {
    /// The pre-authentication encoding of a payload.
    #[must_use]
    pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
        let head = format!(
            "DSSEv1 {} {payload_type} {} ",
            payload_type.len(),
            payload.len()
        );
        let mut pae = Vec::with_capacity(head.len() + payload.len());
        pae.extend_from_slice(head.as_bytes());
        pae.extend_from_slice(payload);
        pae
    }

    /// Signs a payload. Not public: only checked types are signed.
    pub(crate) fn sign(key: &SigningKey, payload: &[u8]) -> Envelope<'static> {
        let signature = key.sign(&Self::pae(PAYLOAD_TYPE, payload));
        Envelope {
            payload_type: Cow::Borrowed(PAYLOAD_TYPE),
            payload: Cow::Owned(base64::encode(payload)),
            signatures: Some(vec![Signature {
                keyid: Cow::Owned(key.public().id().to_owned()),
                sig: Cow::Owned(base64::encode(&signature)),
            }]),
        }
    }

    /// The envelope as one line of JSON, without a newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// The key IDs its signatures name.
    pub fn key_ids(&self) -> impl Iterator<Item = &str> {
        self.signatures.iter().flatten().map(|s| s.keyid.as_ref())
    }

    pub(crate) fn write(&self, out: &mut impl Out) {
        out.put("{\"payloadType\":");
        escape::string(out, &self.payload_type);
        out.put(",\"payload\":");
        escape::string(out, &self.payload);
        out.put(",\"signatures\":");
        match &self.signatures {
            None => out.put("null"),
            Some(signatures) => {
                out.put("[");
                for (n, signature) in signatures.iter().enumerate() {
                    out.put(if n == 0 {
                        "{\"keyid\":"
                    } else {
                        ",{\"keyid\":"
                    });
                    escape::string(out, &signature.keyid);
                    out.put(",\"sig\":");
                    escape::string(out, &signature.sig);
                    out.put("}");
                }
                out.put("]");
            }
        }
        out.put("}");
    }

    pub(crate) fn read(json: &mut Json<'a>, members: Members) -> Result<Self, EnvelopeFault> {
        let start = json.at();
        let (mut payload_type, mut payload, mut signatures) = (None, None, None);
        json.object::<EnvelopeFault>(|json, name, at| {
            match name {
                "payloadType" => payload_type = Some(json.string()?),
                "payload" => payload = Some(json.string()?),
                "signatures" if members == Members::Exact && json.null() => signatures = Some(None),
                "signatures" => {
                    let mut list = Vec::new();
                    json.array::<EnvelopeFault>(|json| {
                        // Refused before memory is taken for more.
                        if list.len() == MAX_SIGNATURES {
                            return Err(EnvelopeFault::TooMany(json.at()));
                        }
                        list.push(Signature::read(json, members)?);
                        Ok(())
                    })?;
                    signatures = Some(Some(list));
                }
                _ => return Err(json.unknown(name, at).into()),
            }
            Ok(())
        })?;
        let missing = |name| EnvelopeFault::Missing(name, start);
        Ok(Envelope {
            payload_type: payload_type.ok_or(missing("payloadType"))?,
            payload: payload.ok_or(missing("payload"))?,
            signatures: signatures.ok_or(missing("signatures"))?,
        })
    }

    /// Decodes the payload in the standard alphabet, without any check of its
    /// signatures.
    ///
    /// # Errors
    /// Class `statement`: not canonical base64.
    pub fn payload_bytes(&self) -> Result<Vec<u8>, Fault> {
        base64::decode(&self.payload).map_err(|fault| payload_fault(&fault))
    }

    /// Decodes the payload in either alphabet.
    pub(crate) fn payload_bytes_either(&self) -> Result<(Vec<u8>, Alphabet), Fault> {
        base64::decode_either(&self.payload).map_err(|fault| payload_fault(&fault))
    }

    /// Whether a signature by `key` over `payload` is among the envelope's,
    /// and in which alphabet it stood. Signatures that name another key are
    /// skipped; the first that verifies counts.
    pub(crate) fn verify(
        &self,
        key: &PublicKey,
        payload: &[u8],
        url_safe_too: bool,
    ) -> Result<Alphabet, Fault> {
        let signatures = self.signatures.as_deref().unwrap_or_default();
        let refuse = |reason: SignatureReason| Fault::new(reason).in_member("signatures");
        let pae = Self::pae(&self.payload_type, payload);
        let mut why = None;
        for (n, signature) in signatures.iter().enumerate() {
            if !signature.keyid.is_empty() && signature.keyid != key.id() {
                continue;
            }
            match signature.bytes(url_safe_too) {
                Ok((bytes, alphabet)) if key.verifies(&pae, &bytes) => return Ok(alphabet),
                Ok(_) => why = why.or(Some((SignatureReason::Mismatch, n))),
                Err(reason) => why = why.or(Some((reason, n))),
            }
        }
        Err(match (why, signatures.first()) {
            (Some((reason, n)), _) => Fault::new(reason).in_member(format!("signatures[{n}].sig")),
            (None, None) => refuse(SignatureReason::None).expected(key.id()),
            (None, Some(first)) => refuse(SignatureReason::OtherKey)
                .expected(key.id())
                .found(&first.keyid),
        })
    }
}

impl<'a> Signature<'a> {
    fn read(json: &mut Json<'a>, members: Members) -> Result<Self, EnvelopeFault> {
        let start = json.at();
        let (mut keyid, mut sig) = (None, None);
        json.object::<EnvelopeFault>(|json, name, at| {
            match name {
                "keyid" => keyid = Some(json.string()?),
                "sig" => sig = Some(json.string()?),
                _ => return Err(json.unknown(name, at).into()),
            }
            Ok(())
        })?;
        if members == Members::Foreign {
            keyid.get_or_insert_default();
        }
        Ok(Signature {
            keyid: keyid.ok_or(EnvelopeFault::Missing("signatures.keyid", start))?,
            sig: sig.ok_or(EnvelopeFault::Missing("signatures.sig", start))?,
        })
    }

    fn bytes(&self, url_safe_too: bool) -> Result<([u8; 64], Alphabet), SignatureReason> {
        let (bytes, alphabet) =
            base64::decode_either(&self.sig).map_err(|_| SignatureReason::Encoding)?;
        if alphabet == Alphabet::UrlSafe && !url_safe_too {
            return Err(SignatureReason::UrlSafe);
        }
        match <[u8; 64]>::try_from(bytes.as_slice()) {
            Ok(bytes) => Ok((bytes, alphabet)),
            Err(_) if is_signature_text(&bytes) => Err(SignatureReason::EncodedTwice),
            Err(_) => Err(SignatureReason::Encoding),
        }
    }
}

/// Whether decoded bytes are themselves the base64 text of 64 bytes.
fn is_signature_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| base64::decode_either(text.trim_end()).ok())
        .is_some_and(|(inner, _)| inner.len() == 64)
}

fn payload_fault(fault: &Base64Fault) -> Fault {
    Fault::new(match fault {
        Base64Fault::UrlSafe => StatementReason::PayloadUrlSafe,
        Base64Fault::Invalid => StatementReason::PayloadBase64,
    })
    .in_member("payload")
}
