//! The two encodings of a BOM's values.
//!
//! **Compact** is RFC 8785 for values of objects, arrays, strings, booleans and
//! small integers. The **file form** has the same order and escapes, two-space
//! indentation and one final newline. Members must be given in byte order of
//! their names; the tree walks in this crate sort them.

use std::io::{self, BufRead, Write};

/// Which encoding is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    Compact,
    File,
}

/// Writes values one token at a time.
pub(crate) struct Printer<W> {
    out: W,
    form: Form,
    /// For each open object or array, whether something stands in it.
    open: Vec<bool>,
    after_name: bool,
    /// Length of the file form of what was written, whichever form it was.
    file_bytes: u64,
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W, form: Form) -> Self {
        Printer {
            out,
            form,
            open: Vec::new(),
            after_name: false,
            file_bytes: 0,
        }
    }

    pub(crate) fn begin(&mut self, bracket: char) -> io::Result<()> {
        self.before_value()?;
        self.open.push(false);
        self.put(match bracket {
            '{' => b"{",
            _ => b"[",
        })
    }

    pub(crate) fn end(&mut self, bracket: char) -> io::Result<()> {
        if self.open.pop() == Some(true) {
            self.new_line()?;
        }
        self.put(match bracket {
            '}' => b"}",
            _ => b"]",
        })
    }

    pub(crate) fn name(&mut self, name: &str) -> io::Result<()> {
        self.separate()?;
        self.quoted(name)?;
        self.put(b":")?;
        self.file_bytes += 1;
        if self.form == Form::File {
            self.out.write_all(b" ")?;
        }
        self.after_name = true;
        Ok(())
    }

    pub(crate) fn string(&mut self, text: &str) -> io::Result<()> {
        self.before_value()?;
        self.quoted(text)
    }

    /// A number, `true`, `false` or `null`, as its text.
    pub(crate) fn literal(&mut self, text: &str) -> io::Result<()> {
        self.before_value()?;
        self.put(text.as_bytes())
    }

    /// Ends the value: in the file form with a newline. Gives the length of the
    /// file form.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.file_bytes += 1;
        if self.form == Form::File {
            self.out.write_all(b"\n")?;
        }
        self.out.flush()?;
        Ok(self.file_bytes)
    }

    fn before_value(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.after_name) {
            return Ok(());
        }
        self.separate()
    }

    fn separate(&mut self) -> io::Result<()> {
        let Some(any) = self.open.last_mut() else {
            return Ok(());
        };
        if std::mem::replace(any, true) {
            self.put(b",")?;
        }
        self.new_line()
    }

    fn new_line(&mut self) -> io::Result<()> {
        self.file_bytes += 1 + 2 * self.open.len() as u64;
        if self.form == Form::File {
            self.out.write_all(b"\n")?;
            for _ in 0..self.open.len() {
                self.out.write_all(b"  ")?;
            }
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file_bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn quoted(&mut self, text: &str) -> io::Result<()> {
        self.put(b"\"")?;
        let special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
        let mut rest = text.as_bytes();
        while let Some(at) = rest.iter().position(special) {
            let (plain, tail) = rest.split_at(at);
            self.put(plain)?;
            let Some((byte, after)) = tail.split_first() else {
                break;
            };
            match byte {
                b'"' => self.put(b"\\\"")?,
                b'\\' => self.put(b"\\\\")?,
                0x08 => self.put(b"\\b")?,
                b'\t' => self.put(b"\\t")?,
                b'\n' => self.put(b"\\n")?,
                0x0c => self.put(b"\\f")?,
                b'\r' => self.put(b"\\r")?,
                other => self.put(format!("\\u{other:04x}").as_bytes())?,
            }
            rest = after;
        }
        self.put(rest)?;
        self.put(b"\"")
    }
}

/// Compares what is written with what is there; a difference ends the writing.
pub(crate) struct Compare<R> {
    rest: R,
    pub(crate) at: u64,
    pub(crate) differs: bool,
}

impl<R: BufRead> Compare<R> {
    pub(crate) fn with(rest: R) -> Self {
        Compare {
            rest,
            at: 0,
            differs: false,
        }
    }

    /// Whether exactly what is there was written.
    pub(crate) fn is_equal(&mut self) -> bool {
        !self.differs && self.rest.fill_buf().is_ok_and(<[u8]>::is_empty)
    }
}

impl<R: BufRead> Write for Compare<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let there = self.rest.fill_buf()?;
        let length = there.len().min(bytes.len());
        let same = if there.get(..length) == bytes.get(..length) {
            length
        } else {
            let pairs = there.iter().zip(bytes);
            pairs.take_while(|(a, b)| a == b).count()
        };
        self.rest.consume(same);
        self.at += same as u64;
        if same == length && (length > 0 || bytes.is_empty()) {
            return Ok(length);
        }
        self.differs = true;
        Err(io::Error::other("the texts differ"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Hashes what passes through.
pub(crate) struct Hashing<W> {
    pub(crate) hasher: sha2::Sha256,
    pub(crate) bytes: u64,
    out: W,
}

impl<W: Write> Hashing<W> {
    pub(crate) fn over(out: W) -> Self {
        Hashing {
            hasher: sha2::Digest::new(),
            bytes: 0,
            out,
        }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(bytes)?;
        sha2::Digest::update(&mut self.hasher, bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(form: Form) -> (String, u64) {
        let mut bytes = Vec::new();
        let mut printer = Printer::new(&mut bytes, form);
        printer.begin('{').unwrap();
        printer.name("a").unwrap();
        printer.begin('[').unwrap();
        printer
            .string("\"\\\u{8}\t\n\u{c}\r\u{1}\u{1f}\u{7f}é\u{2028}<")
            .unwrap();
        printer.literal("7").unwrap();
        printer.end(']').unwrap();
        printer.name("b").unwrap();
        printer.literal("true").unwrap();
        printer.end('}').unwrap();
        let length = printer.finish().unwrap();
        (String::from_utf8(bytes).unwrap(), length)
    }

    #[test]
    fn both_forms_are_those_of_the_sorted_json_writer() {
        let (compact, told) = sample(Form::Compact);
        let (file, length) = sample(Form::File);
        let value: serde_json::Value = serde_json::from_str(&compact).unwrap();
        assert_eq!(compact, value.to_string());
        assert_eq!(file, serde_json::to_string_pretty(&value).unwrap() + "\n");
        assert_eq!((told, length), (file.len() as u64, file.len() as u64));
    }

    #[test]
    fn maps_of_the_json_crate_are_sorted() {
        // A dependency that switched this off would change nothing here, since
        // names are sorted before they are printed; it would show in this test.
        let value: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":2}"#).unwrap();
        assert_eq!(value.to_string(), r#"{"a":2,"b":1}"#);
    }
}
