import type { View } from './view.ts'
import { eventsView } from './events/events.ts'

/** All views of the page. */
export const views: readonly View[] = [eventsView]
