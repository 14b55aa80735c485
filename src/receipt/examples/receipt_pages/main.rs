//! Writes the pages of several receipts, for looking at and for the tests
//! that open them in a browser: `receipt_pages DIRECTORY`.
//!
//! Each receipt is signed with the example's public key and complete: bundle,
//! statements, BOM, page. Their texts are as hostile as a stranger can make them.

#![allow(clippy::unwrap_used)]

mod scenes;
mod sign;

use std::{env, fs, path::Path};

use plimsoll_receipt::{
    folder::Folder,
    page, show,
    verify::{self, Options},
};

fn main() {
    let out = env::args_os().nth(1).unwrap_or_default();
    let out = Path::new(&out);
    write(out, "example", example());
    for scene in scenes::all() {
        write(out, scene.name, sign::receipt(&scene));
    }
}

/// The published example.
fn example() -> Folder {
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/receipts/adder");
    let mut folder = Folder::default();
    for (name, _, bytes) in folder.parts() {
        *bytes = fs::read(at.join(name)).unwrap();
    }
    folder
}

fn write(out: &Path, name: &str, mut folder: Folder) {
    let unbound = Options {
        allow_unbound: true,
        ..Options::default()
    };
    let facts = verify::verify(&folder, &unbound).facts.unwrap();
    let at = out.join(name);
    fs::create_dir_all(&at).unwrap();
    for (part, _, bytes) in folder.parts() {
        fs::write(at.join(part), bytes).unwrap();
    }
    fs::write(
        at.join("report.html"),
        page::html(&facts, &show::evidence(&folder)),
    )
    .unwrap();
    println!("{name} {}", facts.result);
}
