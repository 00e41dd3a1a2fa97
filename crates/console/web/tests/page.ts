// The fixture of all tests: a page that fails its test on a console error, a page error, a dialog, or a violation of the policy.
import { expect, test as base, type Page } from '@playwright/test';
import { PASSWORD } from './setup';

export const test = base.extend<{ allow: RegExp[] }>({
  allow: [[], { option: true }],
  page: async ({ page, allow }, use) => {
    const faults: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type()) && !allow.some((pattern) => pattern.test(message.text()))) faults.push(message.text());
    });
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('dialog', (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`)));
    await use(page);
    expect(faults).toEqual([]);
  },
});

export async function logIn(page: Page, hash = ''): Promise<void> {
  await page.goto(`${process.env.CONSOLE}${hash}`);
  await page.getByLabel('User').fill('root');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await expect(page.getByRole('navigation')).toBeVisible();
}

export { expect };
