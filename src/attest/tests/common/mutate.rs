//! Changes of a good bundle, of every kind that files and forgers make.

use super::{Seeded, lines};

/// One change of a bundle; `None` when it changed nothing.
pub fn mutated(base: &[u8], other: &[u8], random: &mut Seeded) -> Option<Vec<u8>> {
    let mut bytes = base.to_vec();
    let mut list: Vec<Vec<u8>> = lines(base).iter().map(|l| l.to_vec()).collect();
    let join = |list: Vec<Vec<u8>>| {
        let mut out = list.join(&b'\n');
        out.push(b'\n');
        out
    };
    let count = list.len();
    let changed = match random.below(13) {
        0 => {
            let at = random.below(bytes.len());
            bytes[at] = random.next() as u8;
            bytes
        }
        1 => {
            bytes.remove(random.below(bytes.len()));
            bytes
        }
        2 => {
            bytes.insert(random.below(bytes.len() + 1), random.next() as u8);
            bytes
        }
        3 => {
            list.swap(random.below(count), random.below(count));
            join(list)
        }
        4 => {
            let line = list[random.below(count)].clone();
            list.insert(random.below(count + 1), line);
            join(list)
        }
        5 => {
            list.remove(random.below(count));
            join(list)
        }
        6 => {
            bytes.truncate(random.below(bytes.len()));
            bytes
        }
        7 => {
            // A line of another bundle, in place of one or between two.
            let theirs = lines(other);
            let line = theirs[random.below(theirs.len())].to_vec();
            let at = random.below(count);
            if random.below(2) == 0 {
                list[at] = line;
            } else {
                list.insert(at, line);
            }
            join(list)
        }
        8 => {
            // One base64 character for another.
            let at = random.below(bytes.len());
            let alphabet = b"ABCDwxyz0189+/=-_";
            bytes[at] = alphabet[random.below(alphabet.len())];
            bytes
        }
        9 => {
            // Parts of two lines exchanged: one's link, message or envelope.
            let (a, b) = (random.below(count), random.below(count));
            let cut = |line: &[u8], name: &str| {
                let at = line.windows(name.len()).position(|w| w == name.as_bytes());
                at.unwrap_or(line.len())
            };
            let name = ["\"link\":", "\"envelope\":", "\"response\":"][random.below(3)];
            let (at_a, at_b) = (cut(&list[a], name), cut(&list[b], name));
            list[a] = [&list[a][..at_a], &list[b][at_b..]].concat();
            join(list)
        }
        10 => {
            let end = random.below(count);
            let tail = list.split_off(end);
            join(tail)
        }
        11 => {
            // White space, escapes and line ends that a lenient reader skips.
            let extra: [&[u8]; 7] = [
                b" ",
                b"\n",
                b"\r",
                b"\t",
                b"\\u0041",
                b"\\/",
                b"\xef\xbb\xbf",
            ];
            let at = random.below(bytes.len() + 1);
            let extra = extra[random.below(extra.len())];
            bytes.splice(at..at, extra.iter().copied());
            bytes
        }
        _ => {
            // A stretch copied over another.
            let length = 1 + random.below(40);
            let from = random.below(bytes.len() - length);
            let to = random.below(bytes.len() - length);
            bytes.copy_within(from..from + length, to);
            bytes
        }
    };
    (changed != base).then_some(changed)
}
