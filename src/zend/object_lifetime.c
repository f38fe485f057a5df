/* Objects that own Rust data, which is freed with them. */

#include "shim.h"

/* What a class does with the data of its objects. */
typedef struct held_class {
	zend_object_handlers handlers; /* First: an object points here. */
	zend_class_entry *ce;
	void (*freed)(uint32_t handle);
	void (*cloned)(uint32_t from, uint32_t to);
	struct held_class *next;
} held_class;

/* Written at the module's start, then only read. */
static held_class *classes;

static const held_class *held_by(const zend_object *object)
{
	return (const held_class *) object->handlers;
}

static zend_object *create(zend_class_entry *ce)
{
	const held_class *held = classes;
	while (held->ce != ce) {
		held = held->next;
	}
	zend_object *object = zend_objects_new(ce);
	object_properties_init(object, ce);
	object->handlers = &held->handlers;
	return object;
}

static zend_object *clone(zend_object *old)
{
	zend_object *object = create(old->ce);
	zend_objects_clone_members(object, old);
	if (held_by(old)->cloned != NULL) {
		held_by(old)->cloned(old->handle, object->handle);
	}
	return object;
}

static void free_object(zend_object *object)
{
	held_by(object)->freed(object->handle);
	zend_object_std_dtor(object);
}

void altair_hold(zend_class_entry *ce, void (*freed)(uint32_t handle), void (*cloned)(uint32_t from, uint32_t to),
	bool can_be_cloned)
{
	held_class *held = pecalloc(1, sizeof(*held), 1);
	held->handlers = std_object_handlers;
	held->handlers.clone_obj = can_be_cloned ? clone : NULL;
	held->handlers.free_obj = free_object;
	held->ce = ce;
	held->freed = freed;
	held->cloned = cloned;
	held->next = classes;
	classes = held;
	ce->create_object = create;
}
