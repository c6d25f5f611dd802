/**
 * What Node is told before the daemon (nodejs.org/api/cli.html, "--max-semi-space-size", in MB). With V8's
 * usual 16 MB for young objects a burst takes some 30 MB more, and a fork copies the map of all memory at
 * each start of an agent; with 4 or less the events that are kept grow old before their time, and each
 * delivery costs a tenth more.
 */
export const nodeOptions: readonly string[] = ['--max-semi-space-size=8']
