//! The figures as tables.

use crate::measure::Summary;

/// All measured parts.
pub struct Report(pub Vec<Summary>);

impl Report {
    /// The median of a part in milliseconds; 0 when there is no such part.
    pub fn median(&self, name: &str) -> f64 {
        self.find(name).map_or(0.0, Summary::median)
    }

    /// The median of a part's writing and syncing in milliseconds.
    pub fn disk(&self, name: &str) -> f64 {
        self.find(name).map_or(0.0, Summary::disk)
    }

    /// The median of a part without writing and syncing, in milliseconds.
    pub fn rest(&self, name: &str) -> f64 {
        self.find(name).map_or(0.0, Summary::rest)
    }

    fn find(&self, name: &str) -> Option<&Summary> {
        self.0.iter().find(|summary| summary.name == name)
    }

    /// Every part with its distribution.
    pub fn print_times(&self) {
        println!("| part | samples | median ms | p95 ms | p99 ms | median without disk ms |");
        println!("|---|---:|---:|---:|---:|---:|");
        for summary in &self.0 {
            println!(
                "| {} | {} | {:.3} | {:.3} | {:.3} | {:.3} |",
                summary.name,
                summary.count(),
                summary.median(),
                summary.at(95),
                summary.at(99),
                summary.rest()
            );
        }
    }
}

/// How often the floor goes into a part.
pub struct Ratio<'a> {
    /// What is compared.
    pub name: &'a str,
    /// Its median in milliseconds.
    pub time: f64,
    /// What the floor is.
    pub floor_name: &'a str,
    /// The floor's median in milliseconds.
    pub floor: f64,
}

/// Parts over what the machine takes for the same at the least.
pub fn print_ratios(ratios: &[Ratio<'_>]) {
    println!("\n| part | median ms | floor | floor ms | ratio |");
    println!("|---|---:|---|---:|---:|");
    for ratio in ratios {
        println!(
            "| {} | {:.3} | {} | {:.3} | {:.2} |",
            ratio.name,
            ratio.time,
            ratio.floor_name,
            ratio.floor,
            ratio.time / ratio.floor
        );
    }
}

/// What the whole is made of. What the parts leave of it, or have too much, is
/// shown as a part of its own: medians of separate samples need not add up.
pub fn print_shares(whole: f64, parts: &[(&str, f64)]) {
    println!("\n| share of everything, new bundle, without the disk | ms | % |");
    println!("|---|---:|---:|");
    let rest = whole - parts.iter().map(|(_, time)| time).sum::<f64>();
    for (name, time) in parts.iter().chain(&[("not explained by the parts", rest)]) {
        println!("| {name} | {time:.3} | {:.1} |", 100.0 * time / whole);
    }
    println!("| whole | {whole:.3} | 100.0 |");
}

/// A median beside its target on a quiet machine with two cores.
pub fn print_target(name: &str, time: f64, most: f64) {
    let verdict = if time <= most { "met" } else { "MISSED" };
    println!("{name}: {time:.3} ms median, target at most {most} ms: {verdict}");
}
