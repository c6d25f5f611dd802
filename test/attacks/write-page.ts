import { writeFileSync } from 'node:fs'
import { packageFolder } from '../../shared/version.ts'
import { toPage } from './table.ts'

/* Writes docs/attacks.md: node dist/test/attacks/write-page.js, then prettier. */
writeFileSync(new URL('docs/attacks.md', packageFolder), toPage())
