//! The page's template language, small enough to be written twice: here and
//! in `script/12_template.js`, which writes the page again to compare it.
//!
//! `{{name}}` shows a text escaped, `{{~name}}` shows it without mark-up,
//! `{{{name}}}` puts it as it is, `{{#name}}…{{/name}}` stands for each item of
//! a list or once when there is something, `{{^name}}…{{/name}}` when there is
//! nothing. Names are looked up in the innermost object first.

use serde_json::Value;
use thiserror::Error;

use super::show;

/// A template or a view that do not fit together: a fault of this program.
#[derive(Debug, Error, Eq, PartialEq)]
pub enum TemplateFault {
    /// A tag does not end or a section is not closed in order.
    #[error("the template is broken at {0}")]
    Broken(String),
    /// The view lacks what the template names.
    #[error("the view has no {0}")]
    Missing(String),
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Tag<'t> {
    Shown(&'t str),
    Plain(&'t str),
    Raw(&'t str),
    Each(&'t str),
    Without(&'t str),
    End(&'t str),
}

/// Writes `template` with the values of `view`.
///
/// # Errors
/// [`TemplateFault`], which a test of the built-in template excludes.
pub fn render(template: &str, view: &Value) -> Result<String, TemplateFault> {
    let mut out = String::with_capacity(template.len() * 2);
    let mut scopes = vec![view];
    let rest = body(template, &mut scopes, None, Some(&mut out))?;
    debug_assert!(rest.is_empty());
    Ok(out)
}

/// Writes up to the end of the section `closing` and gives what follows it.
/// Without `out` it only finds that end.
fn body<'t>(
    mut rest: &'t str,
    scopes: &mut Vec<&Value>,
    closing: Option<&str>,
    mut out: Option<&mut String>,
) -> Result<&'t str, TemplateFault> {
    loop {
        let Some((before, tag, after)) = next(rest)? else {
            if let Some(name) = closing {
                return Err(TemplateFault::Broken(name.to_owned()));
            }
            if let Some(out) = out {
                out.push_str(rest);
            }
            return Ok("");
        };
        if let Some(out) = out.as_deref_mut() {
            out.push_str(before);
        }
        rest = after;
        match tag {
            Tag::End(name) if Some(name) == closing => return Ok(rest),
            Tag::End(name) => return Err(TemplateFault::Broken(name.to_owned())),
            Tag::Each(name) | Tag::Without(name) => {
                let end = body(rest, scopes, Some(name), None)?;
                if let Some(out) = out.as_deref_mut() {
                    section(rest, scopes, tag, name, out)?;
                }
                rest = end;
            }
            Tag::Shown(name) | Tag::Plain(name) | Tag::Raw(name) => {
                if let Some(out) = out.as_deref_mut() {
                    let text = find(scopes, name)?
                        .as_str()
                        .ok_or_else(|| TemplateFault::Missing(name.to_owned()))?;
                    match tag {
                        Tag::Raw(_) => out.push_str(text),
                        Tag::Plain(_) => out.push_str(&show::plain(text)),
                        _ => out.push_str(&show::line(text)),
                    }
                }
            }
        }
    }
}

fn section(
    inner: &str,
    scopes: &mut Vec<&Value>,
    tag: Tag<'_>,
    name: &str,
    out: &mut String,
) -> Result<(), TemplateFault> {
    let value = find(scopes, name)?;
    let items: &[Value] = match value {
        Value::Null | Value::Bool(false) => &[],
        Value::String(text) if text.is_empty() => &[],
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    };
    if matches!(tag, Tag::Without(_)) {
        if items.is_empty() {
            body(inner, scopes, Some(name), Some(out))?;
        }
        return Ok(());
    }
    for item in items {
        let nested = item.is_object();
        if nested {
            scopes.push(item);
        }
        let written = body(inner, scopes, Some(name), Some(&mut *out));
        if nested {
            scopes.pop();
        }
        written?;
    }
    Ok(())
}

fn find<'v>(scopes: &[&'v Value], name: &str) -> Result<&'v Value, TemplateFault> {
    scopes
        .iter()
        .rev()
        .find_map(|scope| scope.get(name))
        .ok_or_else(|| TemplateFault::Missing(name.to_owned()))
}

/// The text before the next tag, the tag, and the text after it.
fn next(rest: &str) -> Result<Option<(&str, Tag<'_>, &str)>, TemplateFault> {
    let Some((before, tail)) = rest.split_once("{{") else {
        return Ok(None);
    };
    let broken = || TemplateFault::Broken(tail.chars().take(20).collect());
    if let Some(tail) = tail.strip_prefix('{') {
        let (name, after) = tail.split_once("}}}").ok_or_else(broken)?;
        return Ok(Some((before, Tag::Raw(name), after)));
    }
    let (name, after) = tail.split_once("}}").ok_or_else(broken)?;
    let tag = match name.split_at_checked(1) {
        Some(("#", name)) => Tag::Each(name),
        Some(("^", name)) => Tag::Without(name),
        Some(("/", name)) => Tag::End(name),
        Some(("~", name)) => Tag::Plain(name),
        _ => Tag::Shown(name),
    };
    Ok(Some((before, tag, after)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_lists_and_absence() {
        let view = json!({"a": "<", "raw": "<b>", "none": "", "list": [{"n": "1"}, {"n": "2"}], "empty": [], "yes": true});
        let template = "{{a}}|{{~a}}|{{{raw}}}|{{#list}}({{n}}{{a}}){{/list}}|{{^empty}}-{{/empty}}{{#empty}}x{{/empty}}\
                        |{{#none}}x{{/none}}{{#yes}}y{{a}}{{/yes}}";
        assert_eq!(
            render(template, &view),
            Ok("&lt;|&lt;|<b>|(1&lt;)(2&lt;)|-|y&lt;".to_owned())
        );
    }

    #[test]
    fn a_template_that_does_not_fit_is_a_fault() {
        let view = json!({"a": "1", "b": "2"});
        assert_eq!(
            render("{{c}}", &view),
            Err(TemplateFault::Missing("c".to_owned()))
        );
        for broken in ["{{#a}}", "{{/a}}", "{{#a}}{{/b}}", "{{a"] {
            assert!(
                matches!(render(broken, &view), Err(TemplateFault::Broken(_))),
                "{broken}"
            );
        }
    }
}
