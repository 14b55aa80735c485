//! Key files.
#![allow(clippy::unwrap_used)]

mod common;

use common::{signing, stranger, vector};
use plimsoll_attestation::{KeyFault, PublicKey, SigningKey, base64};

fn pem(label: &str, der: &[u8]) -> String {
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        base64::encode(der)
    )
}

fn text(name: &str) -> String {
    String::from_utf8(vector(name)).unwrap()
}

const RSA_OID: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";

#[test]
fn the_test_key_has_its_id_and_text() {
    let key = signing();
    assert_eq!(
        key.public().id(),
        "06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9"
    );
    assert_eq!(key.to_pem().as_str(), text("own-mixed.key"));
    assert_eq!(key.public().to_pem(), text("own-mixed.pub"));
    assert_eq!(
        key.public(),
        &PublicKey::from_pem(&vector("own-mixed.pub")).unwrap()
    );
}

#[test]
fn new_keys_differ_and_read_back() {
    let (a, b) = (
        SigningKey::generate().unwrap(),
        SigningKey::generate().unwrap(),
    );
    assert_ne!(a.public().id(), b.public().id());
    let back = SigningKey::from_pem(a.to_pem().as_bytes()).unwrap();
    assert_eq!(back.public().id(), a.public().id());
    assert_eq!(
        PublicKey::from_pem(a.public().to_pem().as_bytes())
            .unwrap()
            .id(),
        a.public().id()
    );
}

#[test]
fn public_key_files_are_refused_each_for_its_reason() {
    let good = text("own-mixed.pub");
    let of = |file: &[u8]| PublicKey::from_pem(file).err();
    assert_eq!(of(format!("comment\n{good}\nmore text").as_bytes()), None);
    assert_eq!(of(good.replace('\n', "\r\n").as_bytes()), None);
    let der = PublicKey::from_pem(good.as_bytes()).map(|key| {
        [
            b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00".as_slice(),
            key.as_bytes(),
        ]
        .concat()
    });
    let der = der.unwrap();
    assert_eq!(of(pem("PUBLIC KEY", &der).as_bytes()), None);
    let rsa = [b"\x30\x82\x01\x22".as_slice(), RSA_OID, &[0; 300]].concat();
    let ec = [
        b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01".as_slice(),
        &[0; 78],
    ]
    .concat();
    let weak = [&der[..12], &[0; 32]].concat();
    for (file, fault) in [
        (vector("own-mixed.key"), KeyFault::PrivateGiven),
        (
            [vector("own-mixed.pub"), vector("own-mixed.key")].concat(),
            KeyFault::PrivateGiven,
        ),
        (
            [vector("own-mixed.pub"), vector("sessions-linked.pub")].concat(),
            KeyFault::TwoKeys,
        ),
        (good.repeat(2).into_bytes(), KeyFault::TwoKeys),
        (
            pem("PUBLIC KEY", &rsa).into_bytes(),
            KeyFault::Algorithm("RSA"),
        ),
        (
            pem("RSA PUBLIC KEY", &rsa).into_bytes(),
            KeyFault::Algorithm("RSA"),
        ),
        (
            pem("PUBLIC KEY", &ec).into_bytes(),
            KeyFault::Algorithm("an elliptic-curve key (ECDSA)"),
        ),
        (pem("CERTIFICATE", &der).into_bytes(), KeyFault::OtherBlock),
        (
            pem("PUBLIC KEY", &der[..43]).into_bytes(),
            KeyFault::Malformed,
        ),
        (
            pem("PUBLIC KEY", &[&der[..], &[0]].concat()).into_bytes(),
            KeyFault::Malformed,
        ),
        (pem("PUBLIC KEY", b"").into_bytes(), KeyFault::Malformed),
        (pem("PUBLIC KEY", &weak).into_bytes(), KeyFault::WeakPoint),
        (
            good.replace("MCow", "MCo*").into_bytes(),
            KeyFault::Malformed,
        ),
        (
            good.replace("END PUBLIC", "END PRIVATE").into_bytes(),
            KeyFault::Malformed,
        ),
        (der.clone(), KeyFault::Der),
        (
            b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA comment\n".to_vec(),
            KeyFault::OpenSsh,
        ),
        (Vec::new(), KeyFault::Empty),
        (b" \n\t\n".to_vec(), KeyFault::Empty),
        (b"hello\n".to_vec(), KeyFault::NoBlock),
        (vec![0xff; 40], KeyFault::NoBlock),
        (vec![b'a'; (64 << 10) + 1], KeyFault::TooLarge),
        (vec![b'a'; 64 << 10], KeyFault::NoBlock),
    ] {
        assert_eq!(
            of(&file),
            Some(fault),
            "{}",
            String::from_utf8_lossy(&file[..file.len().min(99)])
        );
    }
    for cut in 1..good.len() - 1 {
        assert!(of(&good.as_bytes()[..cut]).is_some(), "{cut}");
    }
    assert_eq!(of(&good.as_bytes()[..40]), Some(KeyFault::Truncated));
}

#[test]
fn private_key_files_are_refused_each_for_its_reason() {
    let good = text("own-mixed.key");
    let of = |file: &[u8]| SigningKey::from_pem(file).err();
    assert_eq!(of(format!("text\n{good}").as_bytes()), None);
    let rsa = [
        b"\x30\x82\x04\xbd\x02\x01\x00".as_slice(),
        RSA_OID,
        &[0; 300],
    ]
    .concat();
    let short = [
        b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".as_slice(),
        &[7; 31],
    ]
    .concat();
    // The longer form: version 1 with the public half in [1].
    let with_public = |public: &[u8; 32]| {
        let seed = [7; 32];
        [
            b"\x30\x51\x02\x01\x01\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".as_slice(),
            &seed,
            b"\x81\x21\x00",
            public,
        ]
        .concat()
    };
    let stranger = stranger();
    let longer = pem("PRIVATE KEY", &with_public(stranger.public().as_bytes()));
    let read = SigningKey::from_pem(longer.as_bytes()).unwrap();
    assert_eq!(read.public().id(), stranger.public().id());
    let lying = pem("PRIVATE KEY", &with_public(signing().public().as_bytes()));
    let legacy = good.replace("KEY-----\nMC4", "KEY-----\nProc-Type: 4,ENCRYPTED\n\nMC4");
    for (file, fault) in [
        (vector("own-mixed.pub"), KeyFault::PublicGiven),
        (
            pem("ENCRYPTED PRIVATE KEY", b"x").into_bytes(),
            KeyFault::Encrypted,
        ),
        (legacy.into_bytes(), KeyFault::Encrypted),
        (
            pem("OPENSSH PRIVATE KEY", b"openssh-key-v1").into_bytes(),
            KeyFault::OpenSsh,
        ),
        (
            pem("RSA PRIVATE KEY", b"x").into_bytes(),
            KeyFault::Algorithm("RSA"),
        ),
        (
            pem("EC PRIVATE KEY", b"x").into_bytes(),
            KeyFault::Algorithm("an elliptic-curve key (ECDSA)"),
        ),
        (
            pem("PRIVATE KEY", &rsa).into_bytes(),
            KeyFault::Algorithm("RSA"),
        ),
        (pem("PRIVATE KEY", &short).into_bytes(), KeyFault::Malformed),
        (lying.into_bytes(), KeyFault::Malformed),
        (pem("CERTIFICATE", b"x").into_bytes(), KeyFault::OtherBlock),
        (short, KeyFault::Der),
        (Vec::new(), KeyFault::Empty),
        (good.as_bytes()[..60].to_vec(), KeyFault::Truncated),
        (vec![b'\n'; (64 << 10) + 1], KeyFault::TooLarge),
    ] {
        assert_eq!(of(&file), Some(fault));
    }
}

#[test]
fn nothing_shows_key_material() {
    let key = signing();
    let shown = format!("{key:?} {:?}", SigningKey::from_pem(b"x").unwrap_err());
    assert_eq!(shown, format!("SigningKey({}) NoBlock", key.public().id()));
    let canary = base64::encode(&[0x5a; 40]);
    for label in ["PRIVATE KEY", "PUBLIC KEY", "EC PRIVATE KEY", &canary] {
        let file = format!("-----BEGIN {label}-----\n{canary}\n-----END {label}-----\n");
        for fault in [
            SigningKey::from_pem(file.as_bytes()).unwrap_err(),
            PublicKey::from_pem(file.as_bytes()).unwrap_err(),
        ] {
            let shown = format!("{fault} {fault:?} {} {}", fault.word(), fault.cure());
            assert!(!shown.contains(&canary[..12]), "{shown}");
        }
    }
}

#[test]
fn only_anchors_are_signed_raw() {
    let key = signing();
    assert!(
        key.sign_anchor("DSSEv1 28 application/vnd.in-toto+json 2 {}")
            .is_none()
    );
    assert!(key.sign_anchor("").is_none());
    let text = "plimsoll-attest.bundle/06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9/6879736bc93ccb516f84012b68d8a6982499a14b088f2e689ad8e21a3cc49166\n11\n0BKJGtCOTMKipHDzZNQThaN6hhvzcFmmxg9ejiZEMbE=\n";
    let signature = key.sign_anchor(text).unwrap();
    assert!(key.public().verifies(text.as_bytes(), &signature));
    assert_eq!(
        base64::encode(&signature),
        "hNgFWupiV49hKpXg/JkBqPgbjjUvXtl6MHeIdy3P0hTEPPLEftCrjCfOEtzIxFz88tnJeSPnPJGIRNgY4TebBQ=="
    );
}
