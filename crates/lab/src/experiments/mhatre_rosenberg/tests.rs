use super::*;
use crate::experiments::Options;

#[test]
fn points_have_names_of_their_own() {
    let setting = Options::new("unused").setting(&ENTRY).unwrap();
    let points = plan(&setting);
    let mut names: Vec<String> =
        points.iter().map(|point| format!("{}/{}", point.study, point.key)).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count > 100, "{count}");
}
