//! Credentials that are no text, or hardly any.

use std::io::Write;

use crate::{
    child::TOKEN,
    honest::{answer, call, connect},
    random::Random,
    serving,
};

/// The part of a refused token that no line may hold.
const MARK: &[u8] = b"CANARY-odd";

fn head(authorization: &[u8]) -> Vec<u8> {
    [
        b"POST /plimsoll.v1.SandboxService/Run HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: "
            .as_slice(),
        authorization,
        b"\r\nContent-Length: 2\r\n\r\n{}",
    ]
    .concat()
}

/// None is let in, none is repeated anywhere, and a thousand are one line.
pub fn odd() {
    let (mut running, log) = serving(&[]);
    let mut random = Random(0x746f_6b65_6e73);
    let token = TOKEN.as_bytes();
    let with = |prefix: &[u8], suffix: &[u8]| [prefix, MARK, suffix].concat();
    let mut values = vec![
        b"".to_vec(),
        b"Bearer".to_vec(),
        b"Bearer ".to_vec(),
        with(b"Bearer ", b"\x80\xff\xfe"),
        with(b"Bearer \xc3\x28", b""),
        with(b"Bearer ", b"\ttwo"),
        with(b"Bearer ", &[b'x'; 20 << 10]),
        with(b"Basic ", b""),
        with(b"Bearer\xc2\xa0", b""),
        [b"Bearer ", token, b" ", MARK].concat(),
        [b"Bearer ", &token[1..]].concat(),
        [b"Bearer ", token, b"x"].concat(),
        [b"Bearer ", token, b"\xff"].concat(),
        [b"Bearer ", token, b"\r\nAuthorization: Bearer ", MARK].concat(),
    ];
    for _ in 0..1000 {
        // No end of line, which would end the header; 0x7f and control
        // characters make no header at all.
        let noise: Vec<u8> = (0..1 + random.below(100))
            .map(|_| match random.byte() {
                b'\r' | b'\n' => b'?',
                byte => byte,
            })
            .collect();
        values.push([b"Bearer ", MARK, &noise[..]].concat());
    }
    for value in values {
        let mut peer = connect(&running.address);
        peer.write_all(&head(&value)).unwrap();
        let refused = answer(&mut peer).expect("a refusal is answered");
        assert!(
            matches!(refused.status, 400 | 401),
            "{} for {value:02x?}",
            refused.status
        );
        assert!(!refused.text().contains("CANARY"), "{}", refused.text());
    }
    call(&running.address);
    running.signal("TERM");
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    let text = log.whole();
    assert!(!text.contains("CANARY"), "{text}");
    let refused = text
        .lines()
        .filter(|line| line.contains("credentials refused"));
    // One a window of 30 s, and the last.
    assert!((1..=12).contains(&refused.count()), "{text}");
}
