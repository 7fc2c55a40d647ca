//! Positions compared with known ones, and courses.

use super::*;
use satlink::Trace;

const VIENNA: Place = Place { latitude: 48.2, longitude: 16.4, height: 200.0 };
const MUNICH: Place = Place { latitude: 48.1, longitude: 11.6, height: 500.0 };

fn passes(user: Place, station: Place) -> Passes {
    Passes {
        user,
        station,
        from: None,
        length: Span::from_secs(600),
        step: Span::from_secs(1),
        plan: Span::from_secs(15),
        elevation: 25.0,
        handover_loss: None,
    }
}

/// Seconds, delay, and whether a rate of 0 is given, of each row.
fn rows(csv: &str) -> Vec<(f64, Option<f64>, bool)> {
    let lines = csv.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[0].parse().unwrap(), fields[1].parse().ok(), fields[2] == "0")
        })
        .collect()
}

#[test]
fn geostationary_satellite_stands_still() {
    // One satellite in the equator's plane, a revolution in a sidereal day: after six hours
    // it is where it was, if the Earth turns in the right direction and at the right rate.
    let mut elements = walker("0:1/1/0", 35_786.0).unwrap();
    elements[0].mean_motion = 1.002_737_9;
    let here = Place { latitude: 0.0, longitude: 0.0, height: 0.0 };
    let sky = Sky::new(&passes(here, here), &elements, elements[0].datetime).unwrap();
    let [x, y, _] = sky.position(0, 0.0).unwrap();
    let below = Place { longitude: y.atan2(x).to_degrees(), ..here };
    let sky = Sky::new(&passes(below, below), &elements, elements[0].datetime).unwrap();
    for hours in [0.0, 3.0, 6.0] {
        let [(range, sine), _] = sky.seen(0, hours * 3_600.0).unwrap();
        assert!((range - 35_786.0).abs() < 60.0, "{hours} h: {range} km");
        assert!(sine > 0.999_9, "{hours} h: {sine}");
    }
}

#[test]
fn a_shell_like_starlinks_serves_without_a_gap() {
    let elements = walker("53:1584/72/17", 550.0).unwrap();
    let csv = passes(VIENNA, MUNICH).csv(&elements).unwrap();
    assert!(Trace::parse_csv(&csv).is_ok(), "{}", &csv[..200]);
    let rows = rows(&csv);
    assert_eq!(rows.len(), 600);
    for (at, delay, none) in &rows {
        // 2 × 550 km, less the latitude's part of the flattening, to 2 × 1,123 km at 25°.
        let delay = delay.unwrap_or_else(|| panic!("a gap at {at} s"));
        assert!((3.6..7.6).contains(&delay) && !none, "{at} s: {delay} ms");
    }
    // Between plans, which begin 12 s after a multiple of 15 s, it moves by at most
    // 2 × 7.6 km/s; a hand-over is a jump.
    let jumps = rows.windows(2).filter(|two| (two[1].1.unwrap() - two[0].1.unwrap()).abs() > 0.06);
    let at: Vec<f64> = jumps.map(|two| two[1].0).collect();
    assert!(at.len() > 5 && at.iter().all(|at| at % 15.0 == 12.0), "{at:?}");
    let lossy = Passes { handover_loss: Some(0.1), ..passes(VIENNA, MUNICH) };
    let csv = lossy.csv(&elements).unwrap();
    assert!(Trace::parse_csv(&csv).is_ok());
    let lost = csv.lines().filter(|line| line.ends_with(",0.1")).count();
    assert_eq!(csv.lines().count(), 600 + 2 + lost, "each with a row for its end");
    assert!(lost >= at.len(), "{lost}");
}

#[test]
fn path_of_the_example_is_computed_as_its_first_line_says() {
    let stored = include_str!("../../../../contrib/scenarios/leo.csv");
    let asked = Passes {
        length: Span::from_secs(300),
        handover_loss: Some(0.1),
        ..passes(Place::parse("48,11").unwrap(), Place::parse("45.5,9").unwrap())
    };
    let csv = asked.csv(&walker("53:1584/72/17", 550.0).unwrap()).unwrap();
    // Floating-point functions of other machines may differ in the last digit.
    for (ours, stored) in csv.lines().zip(stored.lines()) {
        let [ours, stored] = [ours, stored]
            .map(|line| line.split(',').map(|field| field.parse::<f64>().ok()).collect::<Vec<_>>());
        let near = ours.iter().zip(&stored).all(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 0.002,
            (a, b) => a.is_none() == b.is_none(),
        });
        assert!(near && ours.len() == stored.len(), "{ours:?} {stored:?}");
    }
    assert_eq!(csv.lines().count(), stored.lines().count());
}

#[test]
fn without_a_satellite_nothing_is_sent() {
    // One plane over the equator is never seen from Vienna, and of few satellites some times
    // none.
    let equator = walker("0:20/1/0", 550.0).unwrap();
    assert!(passes(VIENNA, MUNICH).csv(&equator).is_err());
    let few = walker("53:60/6/1", 550.0).unwrap();
    let csv = passes(VIENNA, MUNICH).csv(&few).unwrap();
    assert!(Trace::parse_csv(&csv).is_ok());
    let rows = rows(&csv);
    let served = rows.iter().filter(|(_, delay, _)| delay.is_some()).count();
    assert!((50..550).contains(&served), "{served}");
    assert!(rows.iter().all(|(_, delay, none)| delay.is_none() == *none));
}

#[test]
fn two_line_elements_are_read_with_and_without_names() {
    // The first satellite of the SGP4 verification set (Vallado et al. 2006).
    let lines = "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753\n\
                 2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667\n";
    let two = elements(lines).unwrap();
    let three = elements(&format!("VANGUARD 1\n{lines}")).unwrap();
    assert_eq!((two.len(), three[0].object_name.as_deref()), (1, Some("VANGUARD 1")));
    let sky = Sky::new(&passes(VIENNA, VIENNA), &two, two[0].datetime).unwrap();
    let radius = sky.position(0, 0.0).unwrap().iter().map(|x| x * x).sum::<f64>().sqrt();
    // 7022.465, -1400.083 and 0.040 km there.
    assert!((radius - 7_160.676).abs() < 0.01, "{radius}");
    assert!(elements("1 00005U\n2 00005\n").is_err() && elements("").unwrap().is_empty());
}

#[test]
fn walker_constellations_and_places_are_checked() {
    for text in ["53", "53:10/3/1", "53:10/0/0", "53:10/5/5", "x:10/5/1", "190:10/5/1"] {
        assert!(walker(text, 550.0).is_err(), "{text}");
    }
    assert!(walker("53:10/5/1", 100.0).is_err());
    assert_eq!(Place::parse("48.2, 16.4,200"), Some(VIENNA));
    assert!(["48", "91,0", "1,2,3,4", "a,b"].iter().all(|text| Place::parse(text).is_none()));
}
