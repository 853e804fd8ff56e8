//! What was generated before stays while there is a mistake, and is found again.

use super::*;

#[test]
fn a_mistake_leaves_what_was_generated_and_waiting_for_all_removes_it() {
    let good = Scene::new();
    let mut world = good.world();
    let before = plan(&world).configurations;
    for generated in before.values() {
        put(&mut world, generated.object.as_ref().clone());
    }

    let advertisements = |spec: &Scene| spec.world().advertisements;
    world.advertisements = advertisements(&Scene::new().with("advertisements", json!(["Later"])));
    let after = plan(&world).configurations;
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());

    let nobody = json!({ "matchLabels": { "for": "nobody" } });
    world.advertisements = advertisements(&Scene::new().with("frrConfigurationSelector", nobody));
    assert_eq!(plan(&world).configurations, BTreeMap::new());
}

#[test]
fn the_plan_of_what_was_generated_is_the_same() {
    let mut world = Scene::new().world();
    let before = plan(&world);
    for generated in before.configurations.values() {
        put(&mut world, generated.object.as_ref().clone());
    }
    assert_eq!(plan(&world), before);
}
