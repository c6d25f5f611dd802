import { setTimeout as wait } from 'node:timers/promises'
import { deliveryOf } from '../load/delivery.ts'
import { postAll } from '../load/wrk.ts'
import { memoryOf } from '../process-stat.ts'
import type { Note } from '../report/sample.ts'
import { startOpenclaw, withHookToken } from '../servers/openclaw.ts'
import { cases, measureOne, quietMs } from './load.ts'

/**
 * openclaw's hooks: its start, and the loads of other servers but 1 MB, which it refuses. It runs
 * for these only: it uses processor time even when it is idle.
 */
export const measureOpenclaw = async (
  folder: string,
  { seconds }: { readonly seconds: number },
  note: Note,
): Promise<void> => {
  const column = 'openclaw'
  const server = await startOpenclaw(folder, await deliveryOf('1 KB'))
  try {
    const row = 'start to the first good answer'
    note({ row, measure: 'ms', column, value: server.startMs })
    await wait(1000)
    const idle = (await memoryOf(server.pid)).now
    note({ row: 'memory of an idle server', measure: 'MB', column, value: idle })
    const warm = withHookToken(await deliveryOf('24 KB'))
    await postAll(server.url, warm, { callers: 16, seconds: 3 })
    for (const [size, callers] of cases) {
      if (size === '1 MB') continue
      const delivery = withHookToken(await deliveryOf(size))
      const target = { column, server, url: server.url } as const
      const row = `posts of ${size}, ${callers} callers`
      await measureOne(row, target, delivery, { callers, seconds }, note)
    }
    await wait(quietMs)
    const after = (await memoryOf(server.pid)).now
    note({ row: 'memory after the loads', measure: 'MB', column, value: after })
  } finally {
    await server.stop()
  }
}
