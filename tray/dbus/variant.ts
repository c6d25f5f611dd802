/*
 * D-Bus values in JavaScript: numbers as they are, 64-bit ones (`x`, `t`) as bigint, strings, paths
 * and signatures as strings, `ay` as bytes, other arrays and structs as arrays, dictionaries as Map,
 * and `v` as this.
 */

/** A value that brings its type along. */
export class Variant<Value = unknown> {
  readonly signature: string
  readonly value: Value

  constructor(signature: string, value: Value) {
    this.signature = signature
    this.value = value
  }
}

/** `variant('s', 'text')` */
export const variant = <Value>(signature: string, value: Value): Variant<Value> =>
  new Variant(signature, value)
