//! Unfinished uploads in a bucket: the clients of stores have no request that lists them.

use crate::error::TableError;
use futures::TryStreamExt;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpClient, HttpRequest, HttpRequestBody};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{Error, Result};
use std::str::FromStr;
use url::Url;

/// A page of a list.
#[derive(Debug, Default, PartialEq, Eq)]
struct Uploads {
    pub uploads: Vec<Upload>,
    /// Where the next page begins.
    pub next: Option<Upload>,
}

/// An upload that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Upload {
    pub path: Path,
    pub id: String,
}

/// A bucket and the way to it.
pub(super) struct Uploading<'a> {
    pub client: &'a HttpClient,
    /// The address of the bucket.
    pub bucket: &'a Url,
    pub access: Access<'a>,
}

/// How a request shows that it may be made.
pub(super) enum Access<'a> {
    /// By a signature.
    Aws { credential: &'a AwsCredential, region: &'a str },
    /// By a token. An empty one is left out.
    Bearer(&'a str),
}

impl Access<'_> {
    fn authorize(&self, request: &mut HttpRequest) -> std::result::Result<(), &'static str> {
        match self {
            Self::Aws { credential, region } => {
                AwsAuthorizer::new(credential, "s3", region).authorize(request, None);
            }
            Self::Bearer("") => {}
            Self::Bearer(token) => {
                let value =
                    format!("Bearer {token}").parse().map_err(|_| "the token is no text of a header")?;
                request.headers_mut().insert("authorization", value);
            }
        }
        Ok(())
    }
}

/// Aborts uploads of keys below `prefix`. Returns their number.
///
/// # Errors
/// [`TableError::Storage`]. It may be repeated.
pub(super) async fn abort_uploads(
    store: &impl MultipartStore,
    bucket: &Uploading<'_>,
    prefix: &Path,
) -> std::result::Result<usize, TableError> {
    let failed = |doing: &str| TableError::storage(format!("{doing} unfinished uploads below '{prefix}'"));
    // Not of a prefix that only begins alike.
    let prefix = format!("{prefix}/");
    let mut after = None;
    let mut aborted = 0;
    loop {
        let listed = listed_uploads(bucket, &prefix, after.as_ref());
        let Uploads { uploads, next } = listed.await.map_err(failed("listing"))?;
        // A store that lists all, whatever the prefix, gives those of others, too.
        for upload in uploads.iter().filter(|upload| upload.path.as_ref().starts_with(&prefix)) {
            match store.abort_multipart(&upload.path, &upload.id).await {
                Ok(()) | Err(Error::NotFound { .. }) => aborted += 1,
                Err(error) => return Err(failed("aborting")(error)),
            }
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(aborted),
        }
    }
}

/// Lists uploads of keys that begin with `prefix`, from the one after `after` on.
async fn listed_uploads(bucket: &Uploading<'_>, prefix: &str, after: Option<&Upload>) -> Result<Uploads> {
    let failed = |reason: String| Error::Generic { store: "uploads", source: reason.into() };
    let mut url = bucket.bucket.clone();
    // In the order of names, in which they are signed.
    if let Some(Upload { path, id }) = after {
        url.query_pairs_mut().append_pair("key-marker", path.as_ref()).append_pair("upload-id-marker", id);
    }
    url.query_pairs_mut().append_pair("prefix", prefix).append_pair("uploads", "");
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    parse_into(request.uri_mut(), url.as_str()).map_err(|_| failed(format!("'{url}' is no address")))?;
    bucket.access.authorize(&mut request).map_err(|reason| failed(reason.to_owned()))?;
    let response = bucket.client.execute(request).await.map_err(|error| failed(error.to_string()))?;
    let status = response.status();
    let pieces: Vec<_> = response
        .into_body()
        .bytes_stream()
        .try_collect()
        .await
        .map_err(|error: object_store::client::HttpError| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&pieces.concat()).into_owned();
    if !status.is_success() {
        return Err(failed(format!("the list of uploads was refused with {status}: {text}")));
    }
    read(&text).ok_or_else(|| failed(format!("the list of uploads is not as S3 writes it: {text}")))
}

fn parse_into<T: FromStr>(place: &mut T, text: &str) -> std::result::Result<(), T::Err> {
    *place = text.parse()?;
    Ok(())
}

/// Reads `ListMultipartUploadsResult`. `None`: it is something else.
fn read(xml: &str) -> Option<Uploads> {
    let (_, list) = xml.split_once("<ListMultipartUploadsResult")?;
    let upload = |key: &str, id: String| Some(Upload { path: Path::parse(key).ok()?, id });
    let mut uploads = Vec::new();
    for part in list.split("<Upload>").skip(1) {
        let (part, _) = part.split_once("</Upload>")?;
        uploads.push(upload(&element(part, "Key")?, element(part, "UploadId")?)?);
    }
    let next = match element(list, "IsTruncated").as_deref() {
        Some("true") => Some(upload(&element(list, "NextKeyMarker")?, element(list, "NextUploadIdMarker")?)?),
        _ => None,
    };
    Some(Uploads { uploads, next })
}

/// The text of the first element of this name.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    Some(text.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_uploads_is_read_page_by_page() {
        let page = |rest: &str, uploads: &str| {
            format!(
                "<?xml version=\"1.0\"?><ListMultipartUploadsResult xmlns=\"x\"><Bucket>b</Bucket>{rest}{uploads}</ListMultipartUploadsResult>"
            )
        };
        let one =
            "<Upload><Key>a/x&amp;y.parquet</Key><UploadId>u1</UploadId><Initiated>t</Initiated></Upload>";
        let two = "<Upload>\n<Key>a/z</Key>\n<UploadId>u2</UploadId></Upload>";
        let upload = |key: &str, id: &str| Upload { path: Path::from(key), id: id.to_owned() };
        let all = read(&page("<IsTruncated>false</IsTruncated>", &format!("{one}{two}"))).expect("a list");
        assert_eq!(all.uploads, [upload("a/x&y.parquet", "u1"), upload("a/z", "u2")]);
        assert_eq!(all.next, None);
        let begun = "<NextKeyMarker>a/z</NextKeyMarker><NextUploadIdMarker>u2</NextUploadIdMarker><IsTruncated>true</IsTruncated>";
        assert_eq!(read(&page(begun, two)).expect("a list").next, Some(upload("a/z", "u2")));
        assert_eq!(read(&page("", "")), Some(Uploads::default()));
        assert_eq!(read("<Error><Code>AccessDenied</Code></Error>"), None);
        assert_eq!(read(&page("", "<Upload><Key>a</Key></Upload>")), None);
    }
}
