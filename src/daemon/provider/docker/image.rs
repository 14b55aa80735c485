//! What an image must be, and what is known of it once it was looked at.

use bollard::models::ImageInspect;

use super::platform;

/// An image that may be launched, by the content it was verified as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// As configured.
    pub(super) reference: String,
    /// Identity of its content, `sha256:…`: what is launched.
    pub(super) id: String,
    /// Its environment, for the guest alone.
    pub(super) environment: Vec<String>,
    /// Identity of the selected platform's manifest; empty when unknown.
    pub(super) software: String,
}

impl Image {
    /// The environment's identity in evidence.
    pub(super) fn identity(&self) -> String {
        format!("docker-image:{}", self.id)
    }
}

/// Why an image is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ImageFault {
    /// The engine names it oddly.
    #[error("the engine gives it no sha256 identity")]
    NoIdentity,
    /// It declares volumes: writable host directories outside every bound.
    #[error("it declares VOLUME {0}: rebuild it without VOLUME")]
    Volumes(String),
    /// An entry of its environment is not `NAME=value`.
    #[error("an entry of its environment is not NAME=value")]
    BadEntry,
    /// A variable that is read before any program of ours can clear it.
    #[error("its environment sets {0}, which is read before anything can clear it")]
    LoaderVariable(String),
}

/// Judges an inspected image.
pub(super) fn judge(reference: &str, seen: ImageInspect) -> Result<Image, ImageFault> {
    let id = seen
        .id
        .filter(|id| is_digest(id))
        .ok_or(ImageFault::NoIdentity)?;
    let config = seen.config.unwrap_or_default();
    no_volumes(config.volumes)?;
    let environment = config.env.unwrap_or_default();
    for entry in &environment {
        let name = match entry.split_once('=') {
            Some((name, _)) if !name.is_empty() => name,
            _ => return Err(ImageFault::BadEntry),
        };
        if is_read_early(entry) {
            return Err(ImageFault::LoaderVariable(name.to_owned()));
        }
    }
    Ok(Image {
        reference: reference.to_owned(),
        id,
        environment,
        software: String::new(),
    })
}

/// Whether a `NAME=value` entry is read before any program of ours can clear it.
pub(super) fn is_read_early(entry: &str) -> bool {
    let name = entry.split('=').next().unwrap_or_default();
    name.starts_with("LD_")
        || ["GLIBC_TUNABLES", "LOCPATH", "NLSPATH", "GCONV_PATH"].contains(&name)
}

fn no_volumes(volumes: Option<Vec<String>>) -> Result<(), ImageFault> {
    let mut volumes = volumes.unwrap_or_default();
    if volumes.is_empty() {
        return Ok(());
    }
    volumes.sort();
    Err(ImageFault::Volumes(volumes.join(", ")))
}

/// What the image is for one platform: its environment and, when everything
/// agrees, the identity of the platform's manifest.
pub(super) fn on_platform(
    image: &mut Image,
    wanted: &str,
    seen: ImageInspect,
) -> Result<(), ImageFault> {
    const MANIFESTS: [&str; 2] = [
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    ];
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let variant = part(&seen.variant);
    let mut stated = format!("{}/{}", part(&seen.os), part(&seen.architecture));
    if !variant.is_empty() {
        stated.push('/');
        stated.push_str(&variant);
    }
    let descriptor = seen.descriptor.clone().unwrap_or_default();
    let own = judge(&image.reference, seen)?;
    image.environment = own.environment;
    let wanted = platform::normal(wanted);
    let agrees = platform::normal(&stated) == wanted
        && descriptor.digest.as_deref() == Some(own.id.as_str())
        && descriptor
            .media_type
            .as_deref()
            .is_some_and(|kind| MANIFESTS.contains(&kind));
    image.software = if agrees {
        format!("oci-manifest:{wanted}@{}", own.id)
    } else {
        String::new()
    };
    Ok(())
}

fn is_digest(id: &str) -> bool {
    id.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ID: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn seen(value: serde_json::Value) -> ImageInspect {
        let mut whole = json!({"Id": ID});
        whole
            .as_object_mut()
            .unwrap()
            .extend(value.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn judged(value: serde_json::Value) -> Result<Image, String> {
        judge("r:1", seen(value)).map_err(|fault| fault.to_string())
    }

    #[test]
    fn what_an_image_may_not_have() {
        let image = judged(json!({"Config": {"Env": ["PATH=/bin", "A="]}})).unwrap();
        assert_eq!(image.identity(), format!("docker-image:{ID}"));
        assert_eq!(image.environment, ["PATH=/bin", "A="]);
        let volumes = json!({"Config": {"Volumes": {"/z": {}, "/data": {}}}});
        assert!(judged(volumes).unwrap_err().contains("VOLUME /data, /z"));
        for (entry, words) in [
            ("LD_PRELOAD=/x", "LD_PRELOAD"),
            ("LD_=1", "LD_"),
            ("GLIBC_TUNABLES=x", "GLIBC_TUNABLES"),
            ("=x", "NAME=value"),
            ("novalue", "NAME=value"),
        ] {
            let fault = judged(json!({"Config": {"Env": [entry]}})).unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
        assert!(judged(json!({"Id": "sha256:short"})).is_err());
        assert!(judged(json!({"Config": null})).is_ok());
    }

    fn software(over: serde_json::Value) -> String {
        let mut image = judged(json!({})).unwrap();
        let mut value = json!({
            "Os": "linux", "Architecture": "amd64",
            "Descriptor": {"digest": ID, "mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 1},
        });
        value
            .as_object_mut()
            .unwrap()
            .extend(over.as_object().unwrap().clone());
        on_platform(&mut image, "linux/x86_64", seen(value)).unwrap();
        image.software
    }

    #[test]
    fn a_software_identity_needs_everything_to_agree() {
        assert_eq!(
            software(json!({})),
            format!("oci-manifest:linux/amd64@{ID}")
        );
        for over in [
            json!({"Architecture": "arm64"}),
            json!({"Os": ""}),
            json!({"Variant": "v3"}),
            json!({"Descriptor": null}),
            json!({"Descriptor": {"digest": ID, "mediaType": "application/vnd.oci.image.index.v1+json"}}),
            json!({"Descriptor": {"digest": "sha256:0", "mediaType": "application/vnd.oci.image.manifest.v1+json"}}),
        ] {
            assert_eq!(software(over.clone()), "", "{over}");
        }
    }

    #[test]
    fn a_platforms_own_volumes_are_refused_too() {
        let mut image = judged(json!({})).unwrap();
        let value = json!({"Config": {"Volumes": {"/data": {}}}});
        assert!(on_platform(&mut image, "linux/amd64", seen(value)).is_err());
    }
}
