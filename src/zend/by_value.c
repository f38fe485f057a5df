/* Arrays as tables, for values that travel as bytes: how one is laid out, and one that is filled in place. */

#include "shim.h"

/* ---- reading ---- */

static uint32_t count_values(const zend_array *array)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < array->nNumUsed; i++) {
		const zval *value = &array->arData[i].val;
		if (UNEXPECTED(Z_TYPE_P(value) == IS_INDIRECT)) {
			value = Z_INDIRECT_P(value);
		}
		count += Z_TYPE_P(value) != IS_UNDEF;
	}
	return count;
}

void altair_table_of(const zend_array *array, altair_table *table)
{
	table->used = array->nNumUsed;
	table->is_packed = HT_IS_PACKED(array);
	if (table->is_packed) {
		table->slots = array->arPacked;
		table->count = array->nNumOfElements;
	} else {
		table->slots = array->arData;
		/* The table's own number includes variables of a symbol table that have no value. */
		table->count = count_values(array);
	}
}

/* ---- making: can bail out ---- */

zval *altair_begin_list(zval *to, uint32_t count)
{
	if (count == 0) {
		ZVAL_EMPTY_ARRAY(to);
		return NULL;
	}
	zend_array *array = zend_new_array(count);
	ZVAL_ARR(to, array); /* from here on, whoever frees `to` frees it */
	zend_hash_real_init_packed(array);
	/* Whole at any moment: an allocation for one of its values may not return. */
	for (uint32_t i = 0; i < count; i++) {
		ZVAL_NULL(&array->arPacked[i]);
	}
	array->nNumUsed = array->nNumOfElements = count;
	array->nNextFreeElement = count;
	return array->arPacked;
}

zend_array *altair_begin_map(zval *to, uint32_t count)
{
	if (count == 0) {
		ZVAL_EMPTY_ARRAY(to);
		return NULL;
	}
	zend_array *array = zend_new_array(count);
	ZVAL_ARR(to, array);
	zend_hash_real_init_mixed(array);
	return array;
}

/* Adds a bucket as zend_hash_add() does, but for growing: the table has room. */
static zval *add(zend_array *map, zend_ulong hash, zend_string *key)
{
	uint32_t place = (uint32_t) hash | map->nTableMask;
	uint32_t number = map->nNumUsed++;
	Bucket *bucket = map->arData + number;
	map->nNumOfElements++;
	bucket->h = hash;
	bucket->key = key;
	ZVAL_NULL(&bucket->val);
	Z_NEXT(bucket->val) = HT_HASH(map, place);
	HT_HASH(map, place) = HT_IDX_TO_HASH(number);
	return &bucket->val;
}

static zval *add_index(zend_array *map, zend_ulong index, uint64_t *steps)
{
	uint32_t next = HT_HASH(map, (uint32_t) index | map->nTableMask);
	while (next != HT_INVALID_IDX) {
		const Bucket *bucket = HT_HASH_TO_BUCKET(map, next);
		if (bucket->h == index && bucket->key == NULL) {
			return NULL;
		}
		++*steps;
		next = Z_NEXT(bucket->val);
	}
	if ((zend_long) index >= map->nNextFreeElement) {
		map->nNextFreeElement = (zend_long) index < ZEND_LONG_MAX ? (zend_long) index + 1 : ZEND_LONG_MAX;
	}
	return add(map, index, NULL);
}

zval *altair_add_index(zend_array *map, zend_long index, uint64_t *steps)
{
	return map->nNumUsed < map->nTableSize ? add_index(map, (zend_ulong) index, steps) : NULL;
}

zval *altair_add_key(zend_array *map, const char *key, size_t len, uint64_t *steps)
{
	zend_ulong index;
	if (map->nNumUsed >= map->nTableSize) {
		return NULL;
	}
	if (ZEND_HANDLE_NUMERIC_STR(key, len, index)) {
		return add_index(map, index, steps);
	}
	zend_ulong hash = zend_inline_hash_func(key, len);
	uint32_t next = HT_HASH(map, (uint32_t) hash | map->nTableMask);
	while (next != HT_INVALID_IDX) {
		const Bucket *bucket = HT_HASH_TO_BUCKET(map, next);
		++*steps;
		if (bucket->h == hash && bucket->key != NULL && ZSTR_LEN(bucket->key) == len) {
			*steps += len / 32;
			if (memcmp(ZSTR_VAL(bucket->key), key, len) == 0) {
				return NULL;
			}
		}
		next = Z_NEXT(bucket->val);
	}
	zend_string *string = zend_string_init_fast(key, len);
	if (!ZSTR_IS_INTERNED(string)) {
		ZSTR_H(string) = hash;
		HT_FLAGS(map) &= ~HASH_FLAG_STATIC_KEYS;
	}
	return add(map, hash, string);
}
