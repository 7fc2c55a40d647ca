//! What a check found, and how it is printed.

/// What one check found.
pub(crate) struct Report {
    pub(crate) name: &'static str,
    /// What was looked at, for the line that says all is well.
    pub(crate) looked_at: String,
    pub(crate) violations: Vec<String>,
    pub(crate) remarks: Vec<String>,
}

impl Report {
    /// Prints the report; true when there were violations.
    pub(crate) fn print(&self) -> bool {
        for remark in &self.remarks {
            println!("{}: note: {remark}", self.name);
        }
        for violation in &self.violations {
            println!("{}: {violation}", self.name);
        }
        println!("{}: {}, {} violations", self.name, self.looked_at, self.violations.len());
        !self.violations.is_empty()
    }
}
