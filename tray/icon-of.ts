import { needsOf } from './needs.ts'
import type { View } from './view.ts'

/** What the icon can say. */
export type IconName = 'idle' | 'running' | 'needs-you' | 'unreachable'

/** The icon for a view. A need outlasts a run, so it wins over one. */
export const iconOf = ({ daemon }: View): IconName => {
  if (daemon.state !== 'connected') return 'unreachable'
  if (needsOf(daemon.status).some(({ urgent }) => urgent)) return 'needs-you'
  return daemon.status.queue.running > 0 ? 'running' : 'idle'
}
