//! Anchors: the exact form, hostile ones, and bundles against them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{
    anchors::{against, anchor_of, cut, forged, own, own_key, signature, text_of, word},
    lines, signing, stranger,
};
use plimsoll_attestation::{
    PublicKey,
    anchor::{Anchor, AnchorCheck},
    base64,
};
use plimsoll_record::Digest;

#[test]
fn the_worked_example() {
    let anchor = anchor_of(&own());
    assert_eq!(anchor.as_bytes().len(), 452);
    assert_eq!(
        Digest::of(anchor.as_bytes()).to_hex(),
        "33e10248dfef01c5367b833f7b4fc426ad115b5b40b2d65ada1b4586b2f1b84a"
    );
    let text = String::from_utf8(anchor.as_bytes().to_vec()).unwrap();
    let origin = "plimsoll-attest.bundle/06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9/6879736bc93ccb516f84012b68d8a6982499a14b088f2e689ad8e21a3cc49166";
    assert_eq!(
        text,
        format!(
            "{origin}\n11\n0BKJGtCOTMKipHDzZNQThaN6hhvzcFmmxg9ejiZEMbE=\n\n\u{2014} {origin} suCJY4TYBVrqYlePYSqV4PyZAaj4G441L17ZejB3iHctz9IUxDzyxH7Qq4wnzhLcyMRc/PLZyXkj5zyRiETYGOE3mwU=\n"
        )
    );
    let read = Anchor::open(anchor.as_bytes(), &[own_key()]).unwrap();
    assert_eq!(read, anchor);
    assert_eq!(
        (read.reach().lines(), read.reach().key_id()),
        (11, own_key().id())
    );
    against(&own(), read).unwrap();
}

#[test]
fn a_cut_bundle_is_behind_and_an_exchanged_one_differs() {
    let whole = anchor_of(&own());
    let first = anchor_of(&cut(4));
    // The older anchor is met by the grown bundle, and by the cut one.
    against(&own(), first.clone()).unwrap();
    against(&cut(4), first).unwrap();
    let fault = against(&cut(4), whole.clone()).unwrap_err();
    assert_eq!(word(&fault), ("anchor", "behind"));
    assert_eq!(
        (fault.expected_value(), fault.found_value()),
        (Some("11"), Some("4"))
    );
    let empty = AnchorCheck::new(Some(whole)).met(None).unwrap_err();
    assert_eq!(word(&empty), ("anchor", "behind"));
    assert_eq!(empty.found_value(), Some("0"));
    AnchorCheck::new(None).met(None).unwrap();
}

#[test]
fn hostile_forms() {
    let anchor = anchor_of(&own());
    let note = String::from_utf8(anchor.as_bytes().to_vec()).unwrap();
    let text = text_of(&anchor);
    let (origin, rest) = text.split_once('\n').unwrap();
    let hash = rest.split('\n').nth(1).unwrap();
    let key = signing();
    let sign = |text: &str| forged(text, &key);
    let many = note.clone() + &format!("\u{2014} other {}\n", base64::encode(&[7; 68])).repeat(16);
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("a leading zero", sign(&format!("{origin}\n011\n{hash}\n"))),
        ("zero", sign(&format!("{origin}\n0\n{hash}\n"))),
        ("a sign", sign(&format!("{origin}\n+11\n{hash}\n"))),
        ("no number", sign(&format!("{origin}\n\n{hash}\n"))),
        (
            "over 64 bits",
            sign(&format!("{origin}\n{}9\n{hash}\n", u64::MAX)),
        ),
        ("an extension line", sign(&format!("{text}more\n"))),
        ("two lines", sign(&format!("{origin}\n11\n"))),
        (
            "a short hash",
            sign(&format!("{origin}\n11\n{}\n", &hash[4..])),
        ),
        (
            "a hash not padded",
            sign(&format!("{origin}\n11\n{}\n", hash.trim_end_matches('='))),
        ),
        ("upper case", sign(&text.replace("06e3", "06E3"))),
        (
            "another system's note",
            sign(&text.replace("plimsoll-attest.bundle/06", "plimsoll-attest.bundle/x6")),
        ),
        ("CRLF", note.replace('\n', "\r\n").into_bytes()),
        ("a NUL", note.replace("11", "1\0").into_bytes()),
        ("a byte order mark", format!("\u{feff}{note}").into_bytes()),
        ("no blank line", note.replace("\n\n", "\n").into_bytes()),
        (
            "two blank lines",
            note.replace("\n\n", "\n\n\n").into_bytes(),
        ),
        ("no signature", format!("{text}\n").into_bytes()),
        ("text after it", format!("{note}x\n").into_bytes()),
        ("a blank line at the end", format!("{note}\n").into_bytes()),
        ("no end of line", note.trim_end().as_bytes().to_vec()),
        (
            "a hyphen for a dash",
            note.replace('\u{2014}', "-").into_bytes(),
        ),
        (
            "a short signature",
            format!("{text}\n\u{2014} x AAAA\n").into_bytes(),
        ),
        (
            "a name with a plus",
            format!("{text}\n\u{2014} a+b {}\n", base64::encode(&[1; 68])).into_bytes(),
        ),
        (
            "URL-safe signature",
            note.replace('/', "_")
                .replace("bundle_", "bundle/")
                .into_bytes(),
        ),
        ("17 signatures", many.clone().into_bytes()),
        ("not UTF-8", [anchor.as_bytes(), &[0xff, b'\n']].concat()),
        (
            "too long",
            [anchor.as_bytes(), &vec![b'\n'; 16 << 10]].concat(),
        ),
    ] {
        let fault = Anchor::open(&bytes, &[own_key()]).unwrap_err();
        assert_eq!(word(&fault), ("anchor", "format"), "{what}: {fault:?}");
    }
    // One less signature line is taken, and those of strangers are ignored.
    let sixteen = many.rsplit_once('\u{2014}').unwrap().0;
    Anchor::open(sixteen.as_bytes(), &[own_key()]).unwrap();
    for end in 0..note.len() {
        assert!(Anchor::open(&note.as_bytes()[..end], &[own_key()]).is_err());
    }
    for at in 0..note.len() {
        let mut changed = note.clone().into_bytes();
        changed[at] ^= 1;
        assert!(Anchor::open(&changed, &[own_key()]).is_err(), "{at}");
    }
}

#[test]
fn hostile_signatures() {
    let anchor = anchor_of(&own());
    let text = text_of(&anchor);
    let origin = text.split('\n').next().unwrap();
    let (good, other) = (signing(), stranger());
    let ours = signature(&text, origin, &good);
    let theirs = signature(&text, origin, &other);
    let open = |signatures: &str, keys: &[PublicKey]| {
        let verdict = Anchor::open(format!("{text}\n{signatures}").as_bytes(), keys);
        verdict.map(|_| ()).map_err(|fault| word(&fault).1)
    };
    let (good, other) = (good.public().clone(), other.public().clone());
    let one = std::slice::from_ref(&good);
    let both = [good.clone(), other.clone()];
    assert_eq!(open(&ours, one), Ok(()));
    assert_eq!(open(&theirs, one), Err("signature"));
    assert_eq!(open(&ours, &[]), Err("signature"));
    assert_eq!(open(&format!("{theirs}{ours}"), one), Ok(()));
    assert_eq!(open(&format!("{ours}{theirs}"), &both), Ok(()));
    assert_eq!(open(&theirs, &both), Ok(()));
    // An accepted key's line that does not verify refuses, whatever else is there.
    let broken = |line: &str| {
        let (head, sig) = line.trim_end().rsplit_once(' ').unwrap();
        let mut bytes = base64::decode(sig).unwrap();
        bytes[30] ^= 1;
        format!("{head} {}\n", base64::encode(&bytes))
    };
    assert_eq!(open(&broken(&ours), one), Err("signature"));
    assert_eq!(
        open(&format!("{ours}{}", broken(&ours)), one),
        Err("signature")
    );
    assert_eq!(
        open(&format!("{ours}{}", broken(&theirs)), &both),
        Err("signature")
    );
    assert_eq!(open(&format!("{ours}{}", broken(&theirs)), one), Ok(()));
    let cut = |line: &str| {
        let (head, sig) = line.trim_end().rsplit_once(' ').unwrap();
        let bytes = base64::decode(sig).unwrap();
        format!("{head} {}\n", base64::encode(&bytes[..67]))
    };
    assert_eq!(open(&cut(&ours), one), Err("signature"));
    // Under another name it is another key's line.
    let renamed = ours.replacen(origin, "elsewhere", 1);
    assert_eq!(open(&renamed, one), Err("signature"));
    // A signature over another text does not move.
    let older = anchor_of(&self::cut(4));
    let sig = String::from_utf8(older.as_bytes().to_vec()).unwrap();
    let sig = sig.split_once("\n\n").unwrap().1;
    assert_eq!(open(sig, one), Err("signature"));
}

#[test]
fn anchors_that_do_not_fit() {
    let key = signing();
    let text = text_of(&anchor_of(&own()));
    let (origin, rest) = text.split_once('\n').unwrap();
    let hash = rest.split('\n').nth(1).unwrap();
    let verdict = |text: &str| {
        let anchor = Anchor::open(&forged(text, &key), &[own_key()]).unwrap();
        against(&own(), anchor)
            .map(|_| ())
            .map_err(|fault| word(&fault).1)
    };
    assert_eq!(verdict(&text), Ok(()));
    // Another bundle, another key.
    let first = &origin[origin.len() - 64..];
    assert_eq!(
        verdict(&text.replace(first, &"0".repeat(64))),
        Err("origin")
    );
    assert_eq!(
        verdict(&text.replace(key.public().id(), &"0".repeat(64))),
        Err("origin")
    );
    // Beyond the end; another line of the bundle; a call's own line and digest.
    assert_eq!(verdict(&format!("{origin}\n12\n{hash}\n")), Err("behind"));
    assert_eq!(
        verdict(&format!("{origin}\n{}\n{hash}\n", u64::MAX)),
        Err("behind")
    );
    assert_eq!(verdict(&format!("{origin}\n4\n{hash}\n")), Err("differs"));
    let bundle = own();
    let call = base64::encode(Digest::of(lines(&bundle)[4]).as_bytes());
    assert_eq!(verdict(&format!("{origin}\n5\n{call}\n")), Err("differs"));
    let checkpoint = base64::encode(Digest::of(lines(&bundle)[3]).as_bytes());
    assert_eq!(verdict(&format!("{origin}\n4\n{checkpoint}\n")), Ok(()));
}
