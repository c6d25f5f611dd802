/** What a daemon that is about to end waits for, in words. */
export const whenFinished = (unfinished: number): string =>
  `when ${unfinished === 1 ? 'an accepted event is' : `${unfinished} accepted events are`} finished`
