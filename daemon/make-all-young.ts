import { setFlagsFromString } from 'node:v8'

/**
 * Has V8 make every object among the young ones. After a burst, in which what belongs to a request lives
 * longer than usual, it would make objects of these sorts among the old ones straight away; these keep
 * what they point to, the bodies of requests, until all memory is collected: 60 MB more in a flood, and a
 * delivery of 1 KB costs 6 % more (`bench/README.md`). A V8 that has no such
 * flag says so on standard error, and goes on.
 */
export const disablePretenuring = (): void => setFlagsFromString('--no-allocation-site-pretenuring')
