/** Bytes of a size as written in configuration: `512kb`, `25mb` (powers of 1024). */
export const bytesOf = (text: string): number => {
  const match = /^(\d+)(b|kb|mb|gb)$/.exec(text)
  const factor = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }[match?.[2] ?? '']
  return factor === undefined ? Number.NaN : Number(match?.[1]) * factor
}

/** Milliseconds of a duration as written in configuration: `500ms`, `30s`, `10m`, `2h`, `30d`. */
export const millisecondsOf = (text: string): number => {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text)
  const factor = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match?.[2] ?? '']
  return factor === undefined ? Number.NaN : Number(match?.[1]) * factor
}

/** So many in so many milliseconds. */
export type Rate = { readonly count: number; readonly perMs: number }

/** A rate as written in configuration: `10/s`, `60/min`, `1000/h`. */
export const rateOf = (text: string): Rate => {
  const match = /^(\d+)\/(s|min|h)$/.exec(text)
  const perMs = { s: 1000, min: 60_000, h: 3_600_000 }[match?.[2] ?? '']
  return { count: Number(match?.[1] ?? Number.NaN), perMs: perMs ?? Number.NaN }
}
