import type { View } from './view.ts'
import { eventView } from './events/event.ts'
import { eventsView } from './events/events.ts'
import { waitingView } from './events/waiting.ts'
import { loginsView } from './logins/logins.ts'
import { machinesView } from './machines.ts'
import { problemsView } from './problems.ts'
import { explainView } from './rules/explain.ts'
import { rulesView } from './rules/rules.ts'
import { schedulesView } from './schedules.ts'
import { sessionsView } from './sessions.ts'
import { startView } from './start/start.ts'
import { usageView } from './usage.ts'

/** All views of the page. */
export const views: readonly View[] = [
  eventsView,
  eventView,
  rulesView,
  explainView,
  waitingView,
  schedulesView,
  sessionsView,
  loginsView,
  startView,
  usageView,
  machinesView,
  problemsView,
]
