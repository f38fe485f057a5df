/* What stands below a node of a syntax tree, whatever its kind. */
#ifndef ALTAIR_AST_CHILDREN_H
#define ALTAIR_AST_CHILDREN_H

#include "zend_ast.h"

static inline bool altair_is_declaration(const zend_ast *ast)
{
#if PHP_VERSION_ID >= 80400
	return ast->kind >= ZEND_AST_FUNC_DECL && ast->kind <= ZEND_AST_PROPERTY_HOOK;
#else
	return ast->kind >= ZEND_AST_FUNC_DECL && ast->kind <= ZEND_AST_ARROW_FUNC;
#endif
}

/* The children of a node, of which each may be NULL; how many there are. None for a leaf, and for a special node of a
 * later PHP, which holds no code that was written. */
static inline uint32_t altair_ast_children(zend_ast *ast, zend_ast ***children)
{
	if (altair_is_declaration(ast)) {
		*children = ((zend_ast_decl *) ast)->child;
		return 5;
	}
	if (zend_ast_is_list(ast)) {
		*children = zend_ast_get_list(ast)->child;
		return zend_ast_get_list(ast)->children;
	}
	if (zend_ast_is_special(ast)) {
		return 0;
	}
	*children = ast->child;
	return zend_ast_get_num_children(ast);
}

#endif
