//! Sizes, headers, names and forbidden words in Rust sources.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Findings;
use crate::Tree;

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// Joined at compile time, so that this file does not find itself.
const FORBIDDEN: [&str; 3] = [concat!("#[", "ignore"), concat!("to", "do!("), concat!("unimple", "mented!(")];
const EMPTY_NAMES: [&str; 7] = ["Manager", "Handler", "Helper", "Util", "Service", "Impl", "Base"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (path, text) in tree.rust() {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            findings.add(path, lines, format!("{lines} lines; a file has at most {FILE_LINES_MAX}: split it"));
        }
        if !text.starts_with("//! ") {
            findings.add(path, 1, "begin with a `//!` header that says in one sentence what the file is for");
        }
        for (at, line) in text.lines().enumerate() {
            for word in FORBIDDEN.iter().filter(|word| line.contains(*word)) {
                findings.add(path, at + 1, format!("`{word}`: nothing ignored or unfinished goes in"));
            }
        }
        match syn::parse_file(text) {
            Ok(file) => Reader { path, findings }.visit_file(&file),
            Err(why) => findings.add(path, why.span().start().line, format!("does not parse: {why}")),
        }
    }
}

struct Reader<'a> {
    path: &'a str,
    findings: &'a mut Findings,
}

impl Reader<'_> {
    fn function(&mut self, sig: &syn::Signature, block: &syn::Block) {
        let first = sig.span().start().line;
        let lines = block.span().end().line + 1 - first;
        if lines > FUNCTION_LINES_MAX {
            let what = format!("`{}` has {lines} lines; a function has at most {FUNCTION_LINES_MAX}", sig.ident);
            self.findings.add(self.path, first, what);
        }
    }

    fn named(&mut self, name: &syn::Ident) {
        let text = name.to_string();
        if let Some(word) = EMPTY_NAMES.iter().find(|word| text.ends_with(*word)) {
            let what = format!("`{text}`: `{word}` says nothing, name the thing itself");
            self.findings.add(self.path, name.span().start().line, what);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.function(&it.sig, &it.block);
        visit::visit_item_fn(self, it);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        self.function(&it.sig, &it.block);
        visit::visit_impl_item_fn(self, it);
    }

    fn visit_item_struct(&mut self, it: &'ast syn::ItemStruct) {
        self.named(&it.ident);
    }

    fn visit_item_enum(&mut self, it: &'ast syn::ItemEnum) {
        self.named(&it.ident);
    }

    fn visit_item_trait(&mut self, it: &'ast syn::ItemTrait) {
        self.named(&it.ident);
    }
}
