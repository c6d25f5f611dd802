/** How long no delivery may come before the collection, in milliseconds. */
const quietMs = 30_000

/**
 * V8 collects garbage when it needs room, and after a burst nothing needs any: some 100 MB would stay for
 * as long as the daemon idles. So it collects once after each burst. Returns what to call with every
 * delivery. Does nothing without Node's `--expose-gc` (`shared/client/spawn.ts`).
 */
export const collectWhenIdle = (
  idleMs = quietMs,
  collect: () => void = () => globalThis.gc?.(),
): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  const whenIdle = (): void => {
    timer = undefined
    collect()
  }
  return () => {
    if (timer) timer.refresh()
    else timer = setTimeout(whenIdle, idleMs).unref()
  }
}
