//! A registry with a token for each caller.

use std::{fs, path::Path};

use sha2::{Digest, Sha256};

use crate::measure::Outcome;

/// The file and the tokens it knows.
pub struct Registry {
    pub path: String,
    pub tokens: Vec<String>,
}

/// Writes one into the folder.
pub fn write(folder: &Path, callers: usize) -> Outcome<Registry> {
    let mut tokens = Vec::with_capacity(callers);
    let mut clients = Vec::with_capacity(callers);
    for number in 0..callers {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
        let token = hex::encode(secret);
        clients.push(serde_json::json!({
            "id": format!("caller-{number}"),
            "token_sha256": hex::encode(Sha256::digest(token.as_bytes())),
            "scopes": ["code:run"],
        }));
        tokens.push(token);
    }
    let path = folder.join("clients.json");
    fs::write(&path, serde_json::json!({ "clients": clients }).to_string())?;
    let path = path.to_str().ok_or("an odd folder")?.to_owned();
    Ok(Registry { path, tokens })
}
