//! Waiters find what comes, and explain what does not.

use std::time::Duration;

use underlay_testkit::{try_wait_for, wait_for};

#[test]
fn what_comes_is_returned() {
    let mut looks = 0;
    let found = wait_for("the third look", Duration::from_mins(1), || {
        looks += 1;
        if looks == 3 { Ok("here") } else { Err(format!("look {looks}")) }
    });
    assert_eq!((found, looks), ("here", 3));
}

#[test]
fn what_does_not_come_is_explained() {
    let mut looks = 0;
    let error = try_wait_for("the moon", Duration::from_millis(120), || -> Result<(), _> {
        looks += 1;
        Err(format!("clouds, {looks} of them"))
    })
    .unwrap_err();
    assert_eq!((error.what.as_str(), error.looks), ("the moon", looks));
    let text = error.to_string();
    let wanted =
        format!("waited 120ms for the moon and looked {looks} times; seen last: clouds, {looks} of them");
    assert_eq!(text, wanted);
}

#[test]
fn without_patience_there_is_one_look() {
    assert_eq!(try_wait_for("luck", Duration::ZERO, || Ok::<_, String>(7)), Ok(7));
    let error = try_wait_for("luck", Duration::ZERO, || Err::<(), _>("none".to_owned())).unwrap_err();
    assert_eq!(error.looks, 1);
}

#[test]
#[should_panic(expected = "for a door and looked")]
fn a_waiter_that_gives_up_fails_the_test() {
    wait_for("a door", Duration::from_millis(1), || Err::<(), _>("a wall".to_owned()));
}
