import { parentPort, workerData } from 'node:worker_threads'
import { systemCode } from '../../../shared/errors.ts'
import { noteRuns } from '../leftovers.ts'
import { noteAndRun } from '../noted-run.ts'
import type { FromThread, ThreadData, ToThread } from './messages.ts'

/*
 * The thread that starts programs; see program-thread.ts. It is given to V8 as text, so that nothing is
 * loaded from the disk while the daemon runs, and has its file in dist/bin to itself.
 */

const port = parentPort
const noteRun = noteRuns(workerData as ThreadData)
const stops = new Map<number, AbortController>()

const tell = (message: FromThread): void => port?.postMessage(message)

const run = async ({ id, options }: ToThread & { kind: 'run' }): Promise<void> => {
  const stop = new AbortController()
  stops.set(id, stop)
  const runIt = noteAndRun(noteRun, (pid) => tell({ kind: 'started', id, pid }))
  try {
    tell({ kind: 'ended', id, ended: await runIt({ ...options, signal: stop.signal }) })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    tell({ kind: 'failed', id, message, code: systemCode(error) })
  } finally {
    stops.delete(id)
  }
}

port?.on('message', (message: ToThread) => {
  if (message.kind === 'run') void run(message)
  else stops.get(message.id)?.abort(message.reason)
})
