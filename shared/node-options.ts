/**
 * What Node is told before the daemon (nodejs.org/api/cli.html). With V8's usual 16 MB for young objects a burst
 * takes some 30 MB more, and a fork copies the map of all memory at each start of an agent; with 4 or less
 * the events that are kept grow old before their time, and each delivery costs a tenth more. With Node's usual
 * four threads for what V8 does beside the program, four compete with it for a processor that is busy, and
 * those who wait for an answer wait longer.
 */
export const nodeOptions: readonly string[] = ['--max-semi-space-size=8', '--v8-pool-size=1']
