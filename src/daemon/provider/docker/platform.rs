//! Names of platforms, brought to one form.

/// The one form of a platform's name: `os/arch` or `os/arch/variant`. Text that
/// is not of that shape stays as it is.
pub(super) fn normal(platform: &str) -> String {
    let lower = platform.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split('/').collect();
    let (os, arch, variant) = match parts.as_slice() {
        [os, arch] => (*os, *arch, ""),
        [os, arch, variant] => (*os, *arch, *variant),
        _ => return platform.to_owned(),
    };
    let (arch, variant) = match (arch, variant) {
        ("aarch64" | "arm64", "" | "8" | "v8" | "v8.0") => ("arm64", ""),
        ("aarch64" | "arm64", "9" | "9.0" | "v9.0") => ("arm64", "v9"),
        ("aarch64" | "arm64", other) => ("arm64", other),
        ("x86_64" | "x86-64" | "amd64", "" | "v1") => ("amd64", ""),
        ("x86_64" | "x86-64" | "amd64", other) => ("amd64", other),
        ("i386", other) => ("386", other),
        ("armhf", _) => ("arm", "v7"),
        ("armel", _) => ("arm", "v6"),
        ("arm", "" | "7") => ("arm", "v7"),
        ("arm", "5") => ("arm", "v5"),
        ("arm", "6") => ("arm", "v6"),
        ("arm", "8") => ("arm", "v8"),
        other => other,
    };
    if variant.is_empty() {
        format!("{os}/{arch}")
    } else {
        format!("{os}/{arch}/{variant}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form() {
        for (name, form) in [
            ("Linux/x86_64", "linux/amd64"),
            ("linux/amd64/v1", "linux/amd64"),
            ("linux/amd64/v3", "linux/amd64/v3"),
            ("linux/aarch64/v8", "linux/arm64"),
            ("linux/arm64/9", "linux/arm64/v9"),
            ("linux/arm", "linux/arm/v7"),
            ("linux/armel", "linux/arm/v6"),
            ("linux/arm/8", "linux/arm/v8"),
            ("linux/i386", "linux/386"),
            ("linux/riscv64", "linux/riscv64"),
            ("Linux", "Linux"),
            ("a/b/c/d", "a/b/c/d"),
        ] {
            assert_eq!(normal(name), form);
            assert_eq!(normal(&normal(name)), form, "{name}");
        }
    }
}
