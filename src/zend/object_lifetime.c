/* Objects that own Rust data, which is freed with them. */

#include "shim.h"

static zend_object_handlers handlers;
static void (*freed)(uint32_t handle);

static zend_object *create(zend_class_entry *ce)
{
	zend_object *object = zend_objects_new(ce);
	object_properties_init(object, ce);
	object->handlers = &handlers;
	return object;
}

static zend_object *clone(zend_object *old)
{
	zend_object *object = create(old->ce);
	zend_objects_clone_members(object, old);
	return object;
}

static void free_object(zend_object *object)
{
	freed(object->handle);
	zend_object_std_dtor(object);
}

void altair_hold(zend_class_entry *ce, void (*hook)(uint32_t handle))
{
	handlers = std_object_handlers;
	handlers.clone_obj = clone;
	handlers.free_obj = free_object;
	freed = hook;
	ce->create_object = create;
}
