import { access } from 'node:fs/promises'
import type { Warning } from '../config/warning.ts'
import type { Home } from '../home/home.ts'
import { isEntryOn, withoutSwitch } from './units.ts'
import { inspectItem, isLinked, type LoginItem } from './items.ts'

/** What is wrong with one file; nothing when it is not there. */
export const checkItem = async (
  item: LoginItem,
  home: Home,
  what: 'daemon' | 'tray',
): Promise<Warning[]> => {
  const mend = `doorward daemon install${what === 'tray' ? ' --tray' : ''}`
  const found = await inspectItem(item, home)
  if (found.is === 'missing') return []
  if (found.is === 'foreign')
    return [
      {
        code: 'login-item-foreign',
        detail: `${item.path} ${found.why}: doorward cannot start the ${what} at login by it`,
        hint: `move it away, then run: ${mend}`,
      },
    ]
  const { node, program } = found.marker
  const gone: string[] = []
  for (const path of [node, program]) if (!(await exists(path))) gone.push(path)
  if (gone.length > 0)
    return [
      {
        code: 'login-item-program-missing',
        detail: `the ${what} does not start at login: ${item.path} names ${gone.join(' and ')}, which ${gone.length === 1 ? 'is' : 'are'} not there any more`,
        hint: mend,
      },
    ]
  if (!isEntryOn(found.text) || !(await isLinked(item)))
    return [
      {
        code: 'login-item-disabled',
        detail: `the ${what} does not start at login: ${item.path} is switched off`,
        hint: `${mend}, or doorward daemon uninstall${what === 'tray' ? ' --tray' : ''}`,
      },
    ]
  if (comparable(found.text) === comparable(item.text)) return []
  return [
    {
      code: 'login-item-outdated',
      detail: `${item.path} is not what this version of doorward and Node would write`,
      hint: mend,
    },
  ]
}

const exists = async (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** PATH is that of the session that asks; a desktop's settings write a line of their own. */
const comparable = (text: string): string =>
  withoutSwitch(text)
    .replace(/^Environment="PATH=.*$/m, '')
    .replace(/<key>PATH<\/key>\n<string>[^<]*<\/string>/, '')
