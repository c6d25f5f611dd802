/**
 * What Node is told before the daemon (nodejs.org/api/cli.html, "--max-semi-space-size", in MB). V8's usual
 * 16 MB for young objects would make it idle with 10 MB more, and a fork copies the map of all memory at
 * each start of an agent; with less than this, deliveries and tokens cost a tenth more.
 */
export const nodeOptions: readonly string[] = ['--max-semi-space-size=4']
